// Shared by all tabs: browsers allow six connections to one server, and many tabs need only one.
import { Stream } from "./stream.js";

const ports = new Set();
const stream = new Stream((message) => ports.forEach((port) => port.postMessage(message)));

self.onconnect = (event) => {
  const port = event.ports[0];
  port.onmessage = ({ data }) => {
    if (data.type === "bye") {
      ports.delete(port);
      if (!ports.size) stream.close();
      return;
    }
    ports.add(port);
    stream.open(data.head, data.half);
    port.postMessage({ type: "state", state: stream.state });
    // What came between the page's making and its arrival here has been told already, to others.
    if (stream.head > data.head) port.postMessage({ type: "change", head: stream.head, tasks: null });
  };
};
