// Keeps what somebody looks at where it is, while what stands above it grows: the element in focus, else the first
// one that can be seen, in everything that scrolls.

const BOXES = ".cards, .history, .scroll, .output";
const ROUNDED = 1; // pixels: browsers scroll by whole ones
const wanted = new WeakMap(); // by box: where its mark was to stand, which rounding may have missed

// Remember the places in the view; call what this returns after the change.
export function anchor(view) {
  const page = document.scrollingElement;
  const boxes = [...view.querySelectorAll(BOXES), view, page];
  const places = boxes.map((box) => place(box, box === page)).filter(Boolean);
  return () => {
    for (const { box, mark, top, from } of places) {
      if (!mark.isConnected) continue;
      box.scrollTop += mark.getBoundingClientRect().top - from() - top;
      wanted.set(box, { mark, top });
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
  return mark ? { box, mark, top: settled(box, mark, mark.getBoundingClientRect().top - edge), from } : null;
}

// Where the mark is, or where it was to be if only rounding lies between: rests must not add up over many changes.
function settled(box, mark, top) {
  const last = wanted.get(box);
  return last?.mark === mark && Math.abs(last.top - top) <= ROUNDED ? last.top : top;
}
