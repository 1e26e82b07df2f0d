// The connection to the process: a WebSocket, opened again when it ends, with longer and
// longer pauses; the numbers alone by server-sent events where WebSockets do not pass.

const pauses = [250, 500, 1000, 2000, 4000, 8000]; // milliseconds
const silence = 6000; // the server speaks once a second

export class Feed {
  // on holds one function for each kind of message: scene, and the types of the text messages; link receives
  // {state: "connecting" | "open" | "waiting" | "numbers" | "denied" | "asleep", until}.
  constructor(on) {
    this.on = on;
    this.views = [];
    this.failures = 0;
    this.opened = 0; // connections so far
    this.heard = 0;
    addEventListener("visibilitychange", () => this.visible());
    addEventListener("online", () => this.retry());
    setInterval(() => this.check(), 1000);
  }

  start() {
    this.visible();
  }

  // retry connects at once.
  retry() {
    if (this.socket || document.hidden) return;
    clearTimeout(this.timer);
    this.connect();
  }

  // watch replaces the streams whose scenes the server sends.
  watch(streams, hz) {
    const text = JSON.stringify({ op: "view", streams, hz });
    if (text === this.view) return;
    this.view = text;
    this.send(text);
  }

  ask(op, stream) {
    this.send(JSON.stringify({ op, stream }));
  }

  send(text) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(text);
  }

  // visible follows the page: one that nobody sees views nothing.
  visible() {
    if (document.hidden) {
      this.send(JSON.stringify({ op: "view", streams: [], hz: 10 }));
      this.link("asleep");
      return;
    }
    if (this.socket?.readyState === WebSocket.OPEN) {
      this.heard = Date.now();
      if (this.view) this.send(this.view);
      this.link("open");
    } else this.retry();
  }

  connect() {
    const address = new URL("live", document.baseURI);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.hash = "";
    this.link(this.failures ? "waiting" : "connecting");
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    this.heard = Date.now();
    socket.onopen = () => {
      this.opened++;
      this.failures = 0;
      this.stopEvents();
      this.link("open");
      if (this.view && !document.hidden) socket.send(this.view);
    };
    socket.onmessage = (event) => {
      this.heard = Date.now();
      if (this.socket === socket) this.receive(event.data);
    };
    socket.onclose = () => {
      if (this.socket === socket) this.closed();
    };
  }

  receive(data) {
    if (typeof data !== "string") {
      if (!document.hidden) this.on.scene(data);
      return;
    }
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return; // of a server that is no such server
    }
    this.on[message.type]?.(message);
  }

  closed() {
    this.socket = null;
    if (document.hidden) return;
    const pause = pauses[Math.min(this.failures, pauses.length - 1)] * (0.8 + 0.4 * Math.random());
    this.failures++;
    this.link("waiting", Date.now() + pause);
    this.timer = setTimeout(() => this.connect(), pause);
    if (this.failures === 3) this.probe();
  }

  // check ends a connection that fell silent without an end, as after a laptop's sleep.
  check() {
    if (!this.socket || document.hidden || Date.now() - this.heard < silence) return;
    const socket = this.socket;
    socket.onclose = socket.onmessage = socket.onopen = null;
    socket.close();
    this.closed();
  }

  // probe finds out why there is no connection: no process, no token, or a proxy that lets
  // no WebSocket through, which gives the numbers without the picture.
  async probe() {
    try {
      const answer = await fetch("api/state", { cache: "no-store" });
      if (answer.status === 401 || answer.status === 403) this.denied = true;
      else if (answer.ok && !this.events && !this.socket?.readyState) this.startEvents();
    } catch {
      return; // no process
    }
    if (this.denied) this.link("denied");
  }

  startEvents() {
    this.events = new EventSource("api/events");
    this.events.onmessage = (event) => {
      this.on.state?.({ type: "state", state: JSON.parse(event.data) });
      this.link("numbers");
    };
    this.events.onerror = () => this.stopEvents();
  }

  stopEvents() {
    this.events?.close();
    this.events = null;
    this.denied = false;
  }

  link(state, until) {
    if (this.events && state === "waiting") state = "numbers";
    if (this.denied && state === "waiting") state = "denied";
    this.on.link({ state, until, opened: this.opened });
  }
}
