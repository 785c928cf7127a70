// Keeps a page up to date. Without it, a page is reloaded by hand.
"use strict";

const MOST_LINES = 5000;
const PAUSE = 1000; // milliseconds between two reads of a page
const TYPING = 300; // milliseconds after which a user types no more

// Where the reader is, stays: the focus, and how far the tables are scrolled.
function replace(live, fresh) {
  const focused = live.contains(document.activeElement) ? document.activeElement : null;
  const scrolled = Array.from(live.querySelectorAll(".scroll"), (one) => one.scrollLeft);
  live.replaceChildren(...fresh.childNodes);
  live.querySelectorAll(".scroll").forEach((one, number) => { one.scrollLeft = scrolled[number] ?? 0; });
  if (!focused) return;
  const isSame = (one) => ["href", "aria-label"].every((name) => one.getAttribute(name) === focused.getAttribute(name));
  const found = Array.from(live.querySelectorAll("a, [tabindex]")).find(isSame);
  (found ?? document.getElementById("content")).focus({ preventScroll: true });
}

function isSelecting(live) {
  const selection = getSelection();
  return !selection.isCollapsed && live.contains(selection.anchorNode);
}

// Says once why a page is no longer kept up to date.
function stopped(beside, sentence = "This page is no longer kept up to date: reload it.") {
  if (document.getElementById("stopped")) return;
  const text = document.createElement("p");
  text.id = "stopped";
  text.className = "warning";
  text.setAttribute("role", "alert");
  text.textContent = sentence;
  beside.before(text);
}

function followPage(live) {
  let version = live.dataset.version;
  let reading = false;
  let over = false;
  const events = new EventSource(live.dataset.source);
  const wanted = () => `${version} ${location.href}`;
  let shown = wanted();
  function stop(sentence) {
    over = true;
    events.close();
    stopped(live, sentence);
  }
  async function read() {
    if (over || reading || document.hidden || shown === wanted()) return;
    reading = true;
    const next = wanted();
    try {
      const response = isSelecting(live) ? null : await fetch(location.href, { headers: { "X-Live": "1" } });
      if (response && !response.ok) {
        stop(response.status === 404 ? "This job is gone." : undefined);
      } else if (response) {
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        const fresh = page.getElementById("live");
        if (!isSelecting(live)) {
          if (fresh) replace(live, fresh);
          shown = next;
        }
      }
    } catch (error) {
      console.warn(error);
    }
    setTimeout(() => { reading = false; read(); }, PAUSE);
  }
  events.onmessage = (event) => { version = event.data; read(); };
  events.addEventListener("over", () => stop());
  events.onerror = () => { if (events.readyState === EventSource.CLOSED) stop(); };
  document.addEventListener("visibilitychange", read);
  return read;
}

function filterWhileTyping(form, read) {
  let timer;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      history.replaceState(null, "", `/?${new URLSearchParams(new FormData(form))}`);
      read();
    }, TYPING);
  });
}

function followLog(log) {
  const pattern = log.dataset.pattern.toLowerCase();
  const events = new EventSource(`${log.dataset.source}?since=${encodeURIComponent(log.dataset.since)}`);
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
  function stop(sentence) {
    events.close();
    stopped(log, sentence);
  }
  events.addEventListener("over", (event) => stop(event.data === "ended" ? "The job has ended, and so has its log." : undefined));
  events.onerror = () => { if (events.readyState === EventSource.CLOSED) stop(); };
}

const live = document.getElementById("live");
const read = live ? followPage(live) : null;
const filter = document.getElementById("filter");
if (filter) filterWhileTyping(filter, read);
const log = document.getElementById("log");
if (log) followLog(log);
