// Keeps a page up to date. Without it, a page is reloaded by hand.
"use strict";

const MOST_LINES = 5000;
const PAUSE = 1000; // milliseconds between two reads of a page

// Says once that a page is no longer kept up to date.
function stopped(beside) {
  if (document.getElementById("stopped")) return;
  const text = document.createElement("p");
  text.id = "stopped";
  text.className = "warning";
  text.setAttribute("role", "alert");
  text.textContent = "This page is no longer kept up to date: reload it.";
  beside.before(text);
}

function followPage(live) {
  let wanted = live.dataset.version;
  let reading = false;
  async function read() {
    if (reading || document.hidden || wanted === live.dataset.version) return;
    reading = true;
    const version = wanted;
    try {
      const response = await fetch(location.href, { headers: { "X-Live": "1" } });
      if (response.ok) {
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        const fresh = page.getElementById("live");
        if (fresh && !live.contains(document.activeElement)) live.replaceChildren(...fresh.childNodes);
        live.dataset.version = version;
      }
    } catch (error) {
      console.warn(error);
    }
    setTimeout(() => { reading = false; read(); }, PAUSE);
  }
  const events = new EventSource(live.dataset.source);
  events.onmessage = (event) => { wanted = event.data; read(); };
  events.addEventListener("over", () => { events.close(); stopped(live); });
  events.onerror = () => { if (events.readyState === EventSource.CLOSED) stopped(live); };
  document.addEventListener("visibilitychange", read);
}

function followLog(log) {
  const pattern = log.dataset.pattern.toLowerCase();
  const events = new EventSource(log.dataset.source);
  const isAtEnd = () => log.scrollTop + log.clientHeight >= log.scrollHeight - 5;
  function add(replica, text) {
    const follow = isAtEnd();
    const name = document.createElement("b");
    name.textContent = replica;
    log.append(name, ` ${text}\n`);
    while (log.childNodes.length > 2 * MOST_LINES) log.firstChild.remove();
    if (follow) log.scrollTop = log.scrollHeight;
  }
  log.scrollTop = log.scrollHeight;
  events.onmessage = (event) => {
    const line = JSON.parse(event.data);
    if (line.text.toLowerCase().includes(pattern)) add(line.replica, line.text);
  };
  events.addEventListener("said", (event) => add("dljob", JSON.parse(event.data)));
  events.addEventListener("over", () => events.close());
}

const live = document.getElementById("live");
if (live) followPage(live);
const log = document.getElementById("log");
if (log) followLog(log);
