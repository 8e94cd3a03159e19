// Builds elements. Text is always set as text: nothing that a job says becomes markup.

export const byId = (id) => document.getElementById(id);

// element("p", {className: "quiet"}, "text", child): properties, then texts and elements.
export function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

// Replaces the children only if `key` has changed, so that focus and selection survive.
export function render(node, key, build) {
  const text = JSON.stringify(key);
  if (node.renderedKey === text) return false;
  node.renderedKey = text;
  node.replaceChildren(...build());
  return true;
}

let toastTimer = 0;
export function toast(text) {
  const node = byId("toast");
  node.textContent = text;
  node.classList.add("on");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => node.classList.remove("on"), 2500);
}

// A page that is not served by TLS or from this machine has no clipboard of its own.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { value: text, "aria-label": "text to copy" });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(`copied: ${text}`);
}

// Sizes a canvas to its box for this screen's pixels, and returns its context in CSS pixels.
export function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
