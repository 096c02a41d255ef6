// One stream of changes from the server. It goes on after the last number that was seen, so nothing is missed.
// Runs in the shared worker, or in the page where there are none.

const FIRST_WAIT = 300, LONGEST_WAIT = 2000, SILENCE = 1800, PATIENCE = 8000; // the server says twice a second that it lives

export class Stream {
  constructor(tell) {
    this.tell = tell;
    this.head = 0;
    this.state = "connecting";
    this.wait = FIRST_WAIT;
    this.half = "";
    this.request = null;
    this.timer = 0;
    this.alive = 0;
  }

  // Begin after this event, unless a stream is open. The half is the page's half of the session.
  open(head, half) {
    if (this.head === 0) this.head = head;
    this.half = half;
    if (this.request || this.timer) return;
    this.#connect();
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.alive);
    this.timer = 0;
    this.request?.abort();
    this.request = null;
  }

  #say(state) {
    this.state = state;
    this.tell({ type: "state", state });
  }

  async #connect() {
    this.timer = 0;
    const request = new AbortController();
    this.request = request;
    this.#expect(PATIENCE);
    try {
      const answer = await fetch(`/board/live?after=${this.head}`, {
        cache: "no-store", credentials: "same-origin", headers: { "AOF-Page": this.half }, signal: request.signal,
      });
      if (answer.status === 401) {
        this.close();
        return this.#say("signed-out");
      }
      if (answer.ok) await this.#read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch { /* the server is away, or the stream was cut off */ }
    if (this.request === request) this.#again();
  }

  // Server-sent events; EventSource could not send the half of the session.
  async #read(reader) {
    this.wait = FIRST_WAIT;
    this.#say("live");
    this.#expect();
    for (let rest = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return;
      const frames = (rest + value).split("\n\n");
      rest = frames.pop();
      this.#expect();
      for (const frame of frames) {
        const data = frame.includes("event: change") && frame.split("\n").find((line) => line.startsWith("data: "));
        if (!data) continue;
        const change = JSON.parse(data.slice(6));
        this.head = change.head;
        this.tell({ type: "change", ...change });
      }
    }
  }

  // A server that has fallen silent is asked anew.
  #expect(wait = SILENCE) {
    clearTimeout(this.alive);
    this.alive = setTimeout(() => this.#again(), wait);
  }

  #again() {
    this.close();
    if (this.state !== "offline") this.#say("offline");
    this.timer = setTimeout(() => this.#connect(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }
}
