// One stream of changes from the server. It goes on after the last number that was seen, so nothing is missed.
// Runs in the shared worker, or in the page where there are none.

const FIRST_WAIT = 300, LONGEST_WAIT = 5000, SILENCE = 40000;

export class Stream {
  constructor(tell) {
    this.tell = tell;
    this.head = 0;
    this.state = "connecting";
    this.wait = FIRST_WAIT;
    this.source = null;
    this.timer = 0;
    this.alive = 0;
  }

  // Begin after this event, unless a stream is open.
  open(head) {
    if (this.head === 0) this.head = head;
    if (this.source || this.timer) return;
    this.#connect();
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.alive);
    this.timer = 0;
    this.source?.close();
    this.source = null;
  }

  #say(state) {
    this.state = state;
    this.tell({ type: "state", state });
  }

  #connect() {
    this.timer = 0;
    const source = new EventSource(`/board/live?after=${this.head}`);
    this.source = source;
    source.onopen = () => {
      this.wait = FIRST_WAIT;
      this.#say("live");
      this.#expect();
    };
    source.addEventListener("alive", () => this.#expect());
    source.addEventListener("change", (event) => {
      this.#expect();
      const change = JSON.parse(event.data);
      this.head = change.head;
      this.tell({ type: "change", ...change });
    });
    source.onerror = () => this.#again();
  }

  // A server that has fallen silent is asked anew.
  #expect() {
    clearTimeout(this.alive);
    this.alive = setTimeout(() => this.#again(), SILENCE);
  }

  async #again() {
    this.close();
    if (this.state !== "offline") this.#say("offline");
    let signedOut = false;
    try {
      const answer = await fetch("/board/session", { cache: "no-store", credentials: "same-origin" });
      signedOut = answer.status === 401;
    } catch { /* the server is away: try again */ }
    if (signedOut) {
      this.#say("signed-out");
      return;
    }
    this.timer = setTimeout(() => this.#connect(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }
}
