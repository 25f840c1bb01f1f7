"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const MOST_SHOWN = 60;
  let data = null;

  function loadData() {
    data = data || JSON.parse(byId("data").textContent);
    return data;
  }

  // The graph: a view box that is moved and scaled.

  const svg = document.querySelector("#graph svg.graph");
  let view = null;
  let full = null;

  function setView(x, y, width, height) {
    view = { x, y, width, height };
    svg.setAttribute("viewBox", [x, y, width, height].map((n) => n.toFixed(1)).join(" "));
  }

  function frameSize() {
    return { width: svg.clientWidth || 1, height: svg.clientHeight || 1 };
  }

  function zoom(factor, atX = 0.5, atY = 0.5) {
    const scale = view.width / frameSize().width;
    const limited = Math.min(Math.max(scale * factor, 0.15), Math.max(fitScale() * 1.3, 1)) / scale;
    const width = view.width * limited;
    const height = view.height * limited;
    setView(view.x + (view.width - width) * atX, view.y + (view.height - height) * atY, width, height);
  }

  function fitScale() {
    const frame = frameSize();
    return Math.max(full.width / frame.width, full.height / frame.height);
  }

  function showAt(x, y, scale) {
    const frame = frameSize();
    const width = frame.width * scale;
    const height = frame.height * scale;
    setView(x - width / 2, y - height / 2, width, height);
  }

  function showStart() {
    const refused = svg.querySelector(".n.refused");
    if (refused) {
      showNode(refused);
      return;
    }
    const frame = frameSize();
    const scale = Math.min(Math.max(1, full.width / frame.width), 1.6);
    const tall = full.height > frame.height * scale;
    const first = middleOf(svg.querySelector(".n") || svg);
    const x = full.width > frame.width * scale ? first.x : full.width / 2;
    showAt(x, tall ? (frame.height * scale) / 2 : full.height / 2, scale);
  }

  function middleOf(element) {
    const box = element.getBBox();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  }

  function showNode(element) {
    const middle = middleOf(element);
    showAt(middle.x, middle.y, 0.9);
  }

  function startGraph() {
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    full = { width, height };
    svg.removeAttribute("width");
    svg.removeAttribute("height");
    showStart();
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(
        Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.004),
        (event.clientX - box.left) / box.width,
        (event.clientY - box.top) / box.height,
      );
    }, { passive: false });
    let held = null;
    svg.addEventListener("pointerdown", (event) => {
      held = { x: event.clientX, y: event.clientY, view, moved: false };
    });
    window.addEventListener("pointermove", (event) => {
      if (!held) return;
      const dx = event.clientX - held.x;
      const dy = event.clientY - held.y;
      held.moved = held.moved || Math.abs(dx) + Math.abs(dy) > 4;
      const scale = held.view.width / frameSize().width;
      svg.classList.toggle("held", held.moved);
      setView(held.view.x - dx * scale, held.view.y - dy * scale, held.view.width, held.view.height);
    });
    window.addEventListener("pointerup", (event) => {
      const node = event.target.closest && event.target.closest("svg.graph .n");
      if (held && !held.moved) showDetail(node);
      held = null;
      svg.classList.remove("held");
    });
    byId("zoom-in").addEventListener("click", () => zoom(0.7));
    byId("zoom-out").addEventListener("click", () => zoom(1 / 0.7));
    byId("zoom-start").addEventListener("click", showStart);
    byId("save-svg").addEventListener("click", () => {
      const whole = svg.cloneNode(true);
      whole.setAttribute("viewBox", `0 0 ${full.width} ${full.height}`);
      for (const side of ["width", "height"]) whole.setAttribute(side, full[side]);
      const text = new XMLSerializer().serializeToString(whole);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
      link.download = `${document.title.replace(/[^\w.-]+/g, "-")}.svg`;
      link.click();
    });
    byId("zoom-fit").addEventListener("click", () =>
      showAt(full.width / 2, full.height / 2, fitScale() * 1.02));
    window.addEventListener("resize", () =>
      showAt(view.x + view.width / 2, view.y + view.height / 2, view.width / frameSize().width));
  }

  function addText(parent, tag, text) {
    const element = document.createElement(tag);
    element.textContent = text;
    parent.append(element);
    return element;
  }

  function showDetail(node) {
    const panel = byId("detail");
    panel.hidden = !node;
    mark(node ? [node] : [], false);
    if (!node) return;
    const [op, name, type, source, attributes] = loadData().drawn[Number(node.dataset.i)];
    panel.replaceChildren();
    addText(panel, "b", op);
    const list = addText(panel, "dl", "");
    const rows = [["name", name], ["type", type], ["source", source], ...attributes];
    for (const [label, value] of rows.filter((row) => row[1] !== "")) {
      addText(list, "dt", label);
      addText(list, "dd", value);
    }
  }

  function mark(nodes, fade) {
    for (const old of document.querySelectorAll(".n.hit, tr.hit")) old.classList.remove("hit");
    for (const node of nodes) node.classList.add("hit");
    if (svg) svg.classList.toggle("faded", fade);
  }

  // The search: rows of tables, nodes of the picture, and nodes that are not drawn.

  function matches(text, words) {
    const lower = text.toLowerCase();
    return words.every((word) => lower.includes(word));
  }

  function* searchAll(words) {
    const held = loadData();
    for (let at = 0; at < held.drawn.length; at += 1) {
      const [op, name, type, source] = held.drawn[at];
      if (matches(`${op} ${name} ${source}`, words)) {
        const node = svg && svg.querySelector(`.n[data-i="${at}"]`);
        yield { title: `${op} ${name}`, text: source || type, node };
      }
    }
    for (const row of document.querySelectorAll("main tbody tr, ul.notes li")) {
      const text = row.cells ? Array.from(row.cells, (c) => c.textContent).join(" ") : row.textContent;
      if (matches(text, words)) {
        const place = row.closest("section").querySelector("h2").textContent;
        yield { title: text.trim().slice(0, 120), text: place, row };
      }
    }
    for (const [op, names] of Object.entries(held.others)) {
      for (const name of names) {
        if (matches(`${op} ${name}`, words)) yield { title: `${op} ${name}`, text: "not drawn" };
      }
    }
  }

  function search() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const list = byId("found");
    list.replaceChildren();
    list.hidden = !words.length;
    if (!words.length) {
      mark([], false);
      return;
    }
    const found = [];
    let count = 0;
    for (const hit of searchAll(words)) {
      count += 1;
      if (count <= MOST_SHOWN) found.push(hit);
    }
    mark(found.map((hit) => hit.node).filter(Boolean), found.some((hit) => hit.node));
    for (const hit of found) {
      const item = addText(list, "li", hit.title);
      addText(item, "small", hit.text);
      item.addEventListener("click", () => open(hit));
    }
    if (count > MOST_SHOWN) addText(list, "li", `and ${count - MOST_SHOWN} more`).className = "none";
    if (!count) addText(list, "li", "nothing found").className = "none";
    list.dataset.count = String(count);
  }

  function open(hit) {
    byId("found").hidden = true;
    if (hit.node) {
      showNode(hit.node);
      showDetail(hit.node);
      byId("graph").scrollIntoView({ block: "center" });
    } else if (hit.row) {
      mark([], false);
      hit.row.classList.add("hit");
      hit.row.scrollIntoView({ block: "center" });
    }
  }

  if (svg) startGraph();
  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") byId("found").querySelector("li")?.click();
    if (event.key === "Escape") {
      event.target.value = "";
      search();
    }
  });
})();
