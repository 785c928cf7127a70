// Runs the page's script in a page of two elements. The arguments name the script and a function of this file.
"use strict";
const fs = require("fs");

const [, , script, what] = process.argv;
const timers = [];
const asked = [];
const said = [];
const opened = [];
let now = 0;
let answer = { ok: true, status: 200, text: async () => "" };

function element(dataset) {
  return {
    dataset, childNodes: [], scrollTop: 0, clientHeight: 0, scrollHeight: 0,
    contains: () => false, querySelectorAll: () => [], replaceChildren() {},
    append(...nodes) { this.childNodes.push(...nodes.map((one) => one.textContent ?? one)); },
    before(text) { said.push(text.textContent); },
  };
}
const live = element({ version: "1", source: "/live" });
const log = element({ pattern: "", source: "/logs/live", since: "2026-11-29T10:00:01+01:00" });
const shown = what.startsWith("log") ? { log } : { live };

global.setTimeout = (call, after) => { timers.push([now + after, call]); };
global.clearTimeout = () => {};
global.document = {
  hidden: false,
  getElementById: (id) => shown[id] ?? (id === "stopped" && said.length ? {} : null),
  addEventListener() {},
  createElement: () => ({ setAttribute() {} }),
};
global.location = { href: "http://here/jobs/a" };
global.getSelection = () => ({ isCollapsed: true });
global.DOMParser = class { parseFromString() { return { getElementById: () => ({ childNodes: [] }) }; } };
global.fetch = async (address) => { asked.push(address); return answer; };
global.EventSource = class {
  constructor(address) { Object.assign(this, { address, heard: {}, readyState: 1, isClosed: false }); opened.push(this); }
  addEventListener(name, call) { this.heard[name] = call; }
  close() { this.isClosed = true; this.readyState = 2; }
};
EventSource.CLOSED = 2;

async function pass(seconds) {
  for (const end = now + 1000 * seconds; now < end; now += 100) {
    await new Promise(setImmediate);
    for (const due of timers.filter(([at]) => at <= now)) { timers.splice(timers.indexOf(due), 1); due[1](); }
    await new Promise(setImmediate);
  }
}

const steps = {
  async live_changes() {
    opened[0].onmessage({ data: "2" });
    await pass(30);
  },
  async live_refused(status) {
    answer = { ok: false, status: Number(status) };
    opened[0].onmessage({ data: "" });
    await pass(30);
    opened[0].onmessage({ data: "3" });
    await pass(30);
  },
  async live_over() {
    opened[0].onmessage({ data: "2" });
    await pass(5);
    opened[0].heard.over({ data: "" });
    opened[0].onmessage({ data: "3" });
    await pass(30);
  },
  async log_line() {
    opened[0].onmessage({ data: JSON.stringify({ replica: "worker-0", text: "step" }) });
  },
  async log_over(how) { opened[0].heard.over({ data: how ?? "" }); },
  async log_broken() { opened[0].readyState = 0; opened[0].onerror(); },
  async log_closed() { opened[0].readyState = 2; opened[0].onerror(); },
};

(0, eval)(fs.readFileSync(script, "utf8"));
const [name, argument] = what.split(":");
steps[name](argument).then(() => {
  const { address, isClosed } = opened[0];
  console.log(JSON.stringify({ asked: asked.length, said, address, isClosed, lines: log.childNodes }));
});
