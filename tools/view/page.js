"use strict";
const steps = [...document.querySelectorAll("[role=listitem]")];
const shown = document.getElementById("shown");

// Text of a step without its IR, which would match nearly everything.
const words = new Map(steps.map((step) => [step,
  [...step.querySelectorAll("summary, .body > :not(.ir)")].map((part) => part.textContent).join(" ").toLowerCase()]));

document.getElementById("filter").addEventListener("input", (event) => {
  const wanted = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const step of steps) step.hidden = !wanted.every((word) => words.get(step).includes(word));
  const count = steps.filter((step) => !step.hidden).length;
  shown.textContent = wanted.length ? `${count} of ${steps.length} steps` : "";
});

// Lines from step to step are drawn for the order of running, and hidden in others.
document.getElementById("order").addEventListener("change", (event) => {
  const key = event.target.value;
  for (const list of document.querySelectorAll("[role=list]")) {
    list.classList.toggle("sorted", key !== "order");
    const own = [...list.querySelectorAll(":scope > [role=listitem]")];
    own.sort((one, other) => other.dataset[key] - one.dataset[key] || other.dataset.order - one.dataset.order);
    list.append(...own);
  }
  steps.splice(0, steps.length, ...document.querySelectorAll("[role=listitem]"));
});

document.getElementById("bars").addEventListener("change", (event) => {
  document.body.classList.toggle("linear", event.target.value === "linear");
});

const openAll = (open) => {
  for (const step of steps) step.querySelector("details").open = open;
};
for (const button of document.querySelectorAll("[data-all]")) {
  button.addEventListener("click", () => openAll(button.dataset.all === "open"));
}

// IR and machine code get colours when they are opened first: most never are.
const TOKENS = new RegExp([
  /(?<comment>\/\/.*|# .*)/, /(?<string>"(?:[^"\\]|\\.)*")/, /(?<value>%[\w$.#-]+)/, /(?<symbol>[@^][\w$.-]+)/,
  /(?<place>^\s*[0-9a-f]+:(?=\s))/,
  /(?<type>![\w.]+|\b(?:tensor|memref|vector|index|bf16|[fi]\d+)\b)/,
  /(?<op>\b[a-z_]\w*\.[\w.]+|(?<=^\s*[0-9a-f]+:\s+)\w+)/, /(?<number>-?\b\d[\w.+]*)/,
].map((token) => token.source).join("|"), "gm");
const colour = (node) => {
  const pieces = [];
  let end = 0;
  for (const match of node.data.matchAll(TOKENS)) {
    const [kind, text] = Object.entries(match.groups).find(([, found]) => found !== undefined);
    const span = document.createElement("span");
    span.className = `t-${kind}`;
    span.textContent = text;
    pieces.push(node.data.slice(end, match.index), span);
    end = match.index + text.length;
  }
  node.replaceWith(...pieces, node.data.slice(end));
};
// The module after a pass is kept compressed.
const unpacked = async (packed) => {
  if (!window.DecompressionStream) return "This browser is too old to unpack it.";
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
};
document.addEventListener("toggle", async (event) => {
  const details = event.target;
  const pre = details.matches(".ir[open]") && details.querySelector(":scope > pre:not(.coloured)");
  if (!pre) return;
  pre.classList.add("coloured");
  if (details.dataset.packed) pre.textContent = await unpacked(details.dataset.packed);
  if (pre.textContent.length > 500000) return;
  const texts = [];
  const walker = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) texts.push(walker.currentNode);
  texts.forEach(colour);
}, true);

// A link to a step opens it.
const openTarget = () => {
  const step = document.getElementById(location.hash.slice(1));
  const details = step && step.querySelector("details");
  if (!details) return;
  step.hidden = false;
  details.open = true;
  details.querySelector("summary").focus({ preventScroll: true });
};
addEventListener("hashchange", openTarget);
openTarget();

// Arrow keys lead from step to step.
document.addEventListener("keydown", (event) => {
  const step = document.activeElement.closest && document.activeElement.closest("[role=listitem]");
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !way || document.activeElement.tagName !== "SUMMARY") return;
  const visible = steps.filter((one) => !one.hidden);
  const next = visible[visible.indexOf(step) + way];
  if (!next) return;
  event.preventDefault();
  next.querySelector("summary").focus();
});

// Paper has no way to open a step.
let opened = [];
addEventListener("beforeprint", () => {
  opened = steps.map((step) => step.querySelector("details")).filter((details) => !details.open);
  for (const details of opened) details.open = true;
});
addEventListener("afterprint", () => { for (const details of opened) details.open = false; });
