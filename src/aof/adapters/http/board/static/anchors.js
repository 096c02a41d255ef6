// Keeps what somebody looks at where it is, while what stands above it grows: the element in focus, else the first
// one that can be seen, in everything that scrolls.

const BOXES = ".cards, .history, .scroll, .output";

// Remember the places in the view; call what this returns after the change.
export function anchor(view) {
  const page = document.scrollingElement;
  const boxes = [...view.querySelectorAll(BOXES), view, page];
  const places = boxes.map((box) => place(box, box === page)).filter(Boolean);
  return () => {
    for (const { box, mark, top, from } of places) {
      if (mark.isConnected) box.scrollTop += mark.getBoundingClientRect().top - from() - top;
    }
  };
}

function place(box, isPage) {
  const focus = document.activeElement;
  const held = focus !== box && focus !== document.body && box.contains(focus) && !focus.closest("dialog");
  if (!box.isConnected || (box.scrollTop === 0 && !(held && box.scrollHeight > box.clientHeight))) return null;
  const from = () => (isPage ? 0 : box.getBoundingClientRect().top);
  const edge = from();
  const mark = held ? focus : [...box.querySelectorAll("[id]")].find((one) => {
    const shape = one.getBoundingClientRect();
    return shape.top >= edge && shape.height > 0;
  });
  return mark ? { box, mark, top: mark.getBoundingClientRect().top - edge, from } : null;
}
