// The websocket to the server: logs in, reconnects, and hands on messages.

import { byId } from "./dom.js";

const RETRY_MS = 1500;
const NO_TOKEN = 4401;
const STORED = "allaboard-token";

export class Link {
  constructor(handlers, onState) {
    this.handlers = handlers;
    this.onState = onState;
    this.hasEnded = false;
    this.token = takeToken();
  }

  open() {
    if (!this.token) {
      askForToken(this);
      return;
    }
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/live`);
    this.socket = socket;
    socket.addEventListener("open", () => {
      socket.send(JSON.stringify({ kind: "login", token: this.token }));
      this.onState("open");
    });
    socket.addEventListener("message", (event) => {
      const message = JSON.parse(event.data);
      const handle = this.handlers[message.kind];
      if (handle) handle(message);
    });
    socket.addEventListener("close", (event) => {
      if (event.code === NO_TOKEN) {
        sessionStorage.removeItem(STORED);
        this.token = "";
        askForToken(this, "The token is not that of this page.");
      } else if (!this.hasEnded) {
        this.onState("lost");
        setTimeout(() => this.open(), RETRY_MS);
      } else {
        this.onState("ended");
      }
    });
  }

  send(message) {
    if (this.socket && this.socket.readyState === WebSocket.OPEN) {
      this.socket.send(JSON.stringify(message));
      return true;
    }
    return false;
  }
}

// The token leaves the address bar at once, so that it is not copied along with the address.
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    sessionStorage.setItem(STORED, token);
    history.replaceState(null, "", location.pathname);
  }
  return token || sessionStorage.getItem(STORED) || "";
}

function askForToken(link, reason) {
  const form = byId("login");
  if (reason) byId("login-why").textContent = `${reason} Open the whole address that allaboard printed, or paste it here.`;
  byId("title").textContent = "token needed";
  form.hidden = false;
  byId("token").focus();
  form.onsubmit = (event) => {
    event.preventDefault();
    link.token = byId("token").value.trim().split("token=").pop();
    if (!link.token) return;
    sessionStorage.setItem(STORED, link.token);
    form.hidden = true;
    link.open();
  };
}
