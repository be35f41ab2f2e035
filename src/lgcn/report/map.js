// The map of the embeddings, on a canvas: it pans, zooms, and can be used by keyboard.
const canvas = byId("map-canvas");
if (canvas) {
  const brush = canvas.getContext("2d");
  const GRID = 10000;
  const view = { x: GRID / 2, y: GRID / 2, zoom: 1 };
  let layout = 0, mode = byId("map-colour").value, chosen = null, cursor = null, shown = null;
  let paint = []; // the colour of each {{unit}}
  const points = () => data.maps[layout];
  const scale = () => (Math.min(canvas.clientWidth, canvas.clientHeight) / GRID) * 0.92 * view.zoom;
  const place = (i) => [
    canvas.clientWidth / 2 + (points().x[i] - view.x) * scale(),
    canvas.clientHeight / 2 - (points().y[i] - view.y) * scale()];

  // What a mode shows: groups with a name and a colour, or a ramp of numbers.
  const RAMPS = { confidence: (i) => nodes.confidence[i], error: (i) => (nodes.wrong[i] === null ? null : Math.abs(nodes.wrong[i])), true: (i) => nodes.true[i], predicted: (i) => nodes.predicted[i] };
  const isRamp = () => mode === "confidence" || (data.task === "regression" && mode !== "split") || (data.task === "multilabel" && mode === "error");
  function groupOf(i) {
    if (mode === "split") return nodes.split[i] < 0 ? "in no split" : SPLITS[nodes.split[i]];
    if (mode === "error") return nodes.wrong[i] === null ? "truth unknown" : nodes.wrong[i] ? "wrong" : "right";
    const value = nodes[mode][i];
    if (value === null || value === -1) return "unknown";
    const first = Array.isArray(value) ? value[0] : value;
    if (first === undefined) return "no label";
    return data.ranks[first] < PALETTE - 1 || data.classes.length <= PALETTE ? data.classes[first] : "other classes";
  }
  const GROUP_COLOURS = { training: "--c0", validation: "--c4", test: "--c3", "in no split": "--c7", right: "--c0", wrong: "--c1", "truth unknown": "--c7", unknown: "--c7", "no label": "--c7", "other classes": "--c7" };
  function variableOf(i, group) {
    if (mode === "split" || mode === "error" || ["unknown", "no label", "other classes"].includes(group)) return GROUP_COLOURS[group];
    return classColour(nodes[mode][i]);
  }

  function repaint() {
    const legend = byId("legend");
    paint = [];
    if (isRamp()) {
      const value = RAMPS[mode];
      const every = [...Array(data.sampled).keys()].map(value).filter((v) => v !== null).sort((a, b) => a - b);
      const low = every[0] ?? 0, high = every[Math.floor(0.99 * (every.length - 1))] ?? 1;
      const numbers = (text) => text.match(/[\d.]+/g).map(Number);
      const [from, to] = [numbers(colour("--ramp-low")), numbers(colour("--ramp-high"))];
      const grey = colour("--line");
      for (let i = 0; i < data.sampled; i++) {
        const v = value(i);
        const share = v === null ? 0 : Math.min(1, Math.max(0, (v - low) / (high - low || 1)));
        paint.push(v === null ? grey : `rgb(${[0, 1, 2].map((c) => Math.round(from[c] + share * (to[c] - from[c]))).join(" ")})`);
      }
      const text = (v) => (mode === "confidence" ? percent(v) : plain(v));
      legend.replaceChildren(el("li", {}, text(low), el("span", { class: "ramp" }), text(high)));
      chosen = null;
    } else {
      const groups = new Map();
      for (let i = 0; i < data.sampled; i++) {
        const group = groupOf(i);
        if (!groups.has(group)) groups.set(group, { variable: variableOf(i, group), count: 0 });
        groups.get(group).count++;
        paint.push(groups.get(group).variable);
      }
      const colours = new Map([...groups.values()].map((g) => [g.variable, colour(g.variable)]));
      paint = paint.map((variable) => colours.get(variable));
      if (chosen !== null && !groups.has(chosen)) chosen = null;
      const sorted = [...groups].sort((a, b) => b[1].count - a[1].count);
      legend.replaceChildren(...sorted.map(([group, g]) => {
        const toggle = () => { chosen = chosen === group ? null : group; repaint(); };
        const swatch = el("span", { class: "swatch" });
        swatch.style.background = `var(${g.variable})`;
        const button = el("button", { type: "button", "aria-pressed": String(chosen === group), onclick: toggle }, swatch, nameOf(group), ` (${g.count.toLocaleString("en")})`);
        button.dataset.group = group;
        return el("li", {}, button);
      }));
    }
    draw();
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
      canvas.width = width * ratio;
      canvas.height = height * ratio;
    }
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.clearRect(0, 0, width, height);
    const radius = Math.max(2, Math.min(6, 140 / Math.sqrt(data.sampled))) * Math.min(2, Math.sqrt(view.zoom));
    const circle = (i, r) => { const [x, y] = place(i); brush.beginPath(); brush.arc(x, y, r, 0, 2 * Math.PI); };
    const wrongs = [];
    for (let i = 0; i < data.sampled; i++) {
      const faint = chosen !== null && groupOf(i) !== chosen;
      brush.globalAlpha = faint ? 0.08 : 0.85;
      brush.fillStyle = paint[i];
      circle(i, radius);
      brush.fill();
      if (!faint && mode === "error" && nodes.wrong[i] && !isRamp()) wrongs.push(i);
    }
    brush.globalAlpha = 1;
    for (const i of wrongs) { brush.fillStyle = paint[i]; circle(i, radius * 1.25); brush.fill(); } // above the right ones
    if (shown !== null) {
      brush.strokeStyle = colour("--ink");
      brush.lineWidth = 1;
      const [x, y] = place(shown);
      for (const { node } of neighboursOf(shown)) if (node < data.sampled && node !== shown) {
        const [a, b] = place(node);
        brush.globalAlpha = 0.55;
        brush.beginPath(); brush.moveTo(x, y); brush.lineTo(a, b); brush.stroke();
        brush.globalAlpha = 1;
        circle(node, radius + 2); brush.stroke();
      }
      brush.lineWidth = 3;
      circle(shown, radius + 4); brush.stroke();
    }
    if (cursor !== null && document.activeElement === canvas) {
      brush.strokeStyle = colour("--link");
      brush.lineWidth = 3;
      circle(cursor, radius + 6); brush.stroke();
    }
  }

  const nearest = (x, y, limit = 14) => {
    let best = null, least = limit * limit;
    for (let i = 0; i < data.sampled; i++) {
      if (chosen !== null && groupOf(i) !== chosen) continue;
      const [a, b] = place(i);
      const far = (a - x) ** 2 + (b - y) ** 2;
      if (far < least) [best, least] = [i, far];
    }
    return best;
  };
  function tip(i) {
    const box = byId("tip");
    box.hidden = i === null;
    if (i === null) return;
    box.replaceChildren(el("strong", {}, nameOf(nodes.id[i])), el("br"), `predicted ${labelText(nodes.predicted[i])}`, el("br"), `true ${labelText(nodes.true[i])}, ${outcomeText(i)}`);
    const [x, y] = place(i);
    box.style.left = `${Math.max(4, Math.min(x + 12, canvas.clientWidth - box.offsetWidth - 6))}px`;
    box.style.top = `${Math.max(4, Math.min(y + 12, canvas.clientHeight - box.offsetHeight - 6))}px`;
  }
  function zoomAt(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const before = scale();
    view.zoom = Math.min(60, Math.max(0.7, view.zoom * factor));
    const change = 1 / before - 1 / scale();
    view.x += (x - canvas.clientWidth / 2) * change;
    view.y -= (y - canvas.clientHeight / 2) * change;
    tip(null);
    draw();
  }
  const reset = () => { Object.assign(view, { x: GRID / 2, y: GRID / 2, zoom: 1 }); tip(null); draw(); };

  // Mouse and fingers: one finger scrolls the page up and down, two fingers zoom.
  const fingers = new Map();
  let moved = 0;
  const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, at(event)); moved = 0; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    const now = at(event), before = fingers.get(event.pointerId);
    if (!before) { tip(nearest(...now)); return; }
    if (fingers.size === 2) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
      const length = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
      zoomAt(length(now) / (length(before) || 1), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      moved = 99;
    } else {
      moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (moved > 4) { view.x -= (now[0] - before[0]) / scale(); view.y += (now[1] - before[1]) / scale(); tip(null); draw(); }
    }
    fingers.set(event.pointerId, now);
  });
  canvas.addEventListener("pointerup", (event) => {
    fingers.delete(event.pointerId);
    if (moved > 4) return;
    const i = nearest(...at(event), event.pointerType === "touch" ? 22 : 14);
    if (i !== null) showNode(i);
  });
  for (const name of ["pointercancel", "lostpointercapture"]) canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => tip(null));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls on, until the map is clicked
    event.preventDefault();
    zoomAt(Math.exp(-event.deltaY / 400), ...at(event));
  }, { passive: false });

  // Keyboard: arrows go to the next {{unit}} in that direction, Enter shows it, + - 0 zoom.
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  function step([dx, dy]) {
    if (cursor === null) { cursor = shown ?? nearest(canvas.clientWidth / 2, canvas.clientHeight / 2, 1e6); }
    else {
      const [x, y] = place(cursor);
      let best = null, least = Infinity;
      for (let i = 0; i < data.sampled; i++) {
        if (i === cursor || (chosen !== null && groupOf(i) !== chosen)) continue;
        const [a, b] = place(i);
        const along = (a - x) * dx + (b - y) * dy, across = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
        if (along > 0.5 && along + 2 * across < least) [best, least] = [i, along + 2 * across];
      }
      cursor = best ?? cursor;
    }
    const [x, y] = place(cursor);
    if (x < 20 || y < 20 || x > canvas.clientWidth - 20 || y > canvas.clientHeight - 20) { view.x = points().x[cursor]; view.y = points().y[cursor]; }
    draw();
    tip(cursor);
    byId("map-status").textContent = `{{Unit}} ${nodes.id[cursor]}, predicted ${labelText(nodes.predicted[cursor])}, ${outcomeText(cursor)}`;
  }
  canvas.addEventListener("keydown", (event) => {
    if (event.key in ARROWS) step(ARROWS[event.key]);
    else if (event.key === "Enter" && cursor !== null) showNode(cursor);
    else if (event.key === "+" || event.key === "=") zoomAt(1.4);
    else if (event.key === "-") zoomAt(1 / 1.4);
    else if (event.key === "0") reset();
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("blur", () => { tip(null); draw(); });
  canvas.addEventListener("focus", draw);

  byId("zoom-in").addEventListener("click", () => zoomAt(1.4));
  byId("zoom-out").addEventListener("click", () => zoomAt(1 / 1.4));
  byId("zoom-reset").addEventListener("click", reset);
  byId("map-colour").addEventListener("change", (event) => { mode = event.target.value; repaint(); });
  byId("map-layout")?.addEventListener("change", (event) => {
    layout = Number(event.target.value);
    byId("map-about").textContent = data.maps[layout].about;
    reset();
  });
  onNode.push((i) => { shown = i; if (i !== null) cursor = i; draw(); });
  onTheme.push(repaint);
  new ResizeObserver(draw).observe(canvas);
  repaint();
}
