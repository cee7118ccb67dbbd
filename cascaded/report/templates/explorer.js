"use strict";
(() => {
  const ROWS = 6; // bars, where there are more classes than can be shown
  const ALL = 10;
  const at = (id) => document.getElementById(`explorer-${id}`);
  const { sets, colors } = JSON.parse(at("data").textContent);
  const networkOf = unpacker(new Map(Object.entries(colors)));
  const box = at("box");
  const sides = [...box.querySelectorAll(".side")].map((root) => ({
    root,
    select: root.querySelector("select"),
    printed: root.querySelector(".printed"),
    statement: root.querySelector(".statement"),
    bars: root.querySelector(".bars"),
    plot: root.querySelector(".plot"),
    blocks: root.querySelector(".blocks"),
    network: null,
  }));
  const now = { set: sets[0], item: 0, order: [], step: 1, steps: 1, timer: 0, width: 360, request: 0 };

  const className = (label) => now.set.classes[label] ?? `class ${label}`;
  const options = (select, names) =>
    select.replaceChildren(
      ...names.map((name, value) => {
        const option = make("option", "", short(name, 48));
        option.value = value;
        option.title = name;
        return option;
      }),
    );

  // ---- images

  function sprite(element, item) {
    const { columns, labels, sprite: sheet } = now.set;
    const rows = Math.ceil(labels.length / columns);
    const along = (place, count) => (count > 1 ? `${(100 * place) / (count - 1)}%` : "0%");
    element.style.backgroundImage = `url("${sheet}")`;
    element.style.backgroundSize = `${100 * columns}% ${100 * rows}%`;
    element.style.backgroundPosition = `${along(item % columns, columns)} ${along(Math.floor(item / columns), rows)}`;
  }

  function layStrip() {
    const { labels } = now.set;
    const bySettling = at("sort").value === "settled";
    const when = sides[0].network.settled;
    now.order = labels.map((_, item) => item);
    now.order.sort((a, b) => (bySettling ? when[a] - when[b] || 0 : 0) || labels[a] - labels[b] || a - b);
    const thumbs = now.order.map((item) => {
      const thumb = make("button", "thumb");
      const name = className(labels[item]);
      const since = when[item] === Infinity ? "never" : `step ${when[item]}`;
      const image = thumb.appendChild(make("span", "image"));
      thumb.appendChild(make("span", "below", bySettling ? since : short(name, 10)));
      thumb.type = "button";
      thumb.title = name;
      thumb.dataset.item = item;
      thumb.setAttribute("aria-label", `Image ${item + 1}, ${name}${bySettling ? `, correct from ${since}` : ""}`);
      sprite(image, item);
      return thumb;
    });
    at("strip").replaceChildren(...thumbs);
  }

  function markThumb() {
    const strip = at("strip");
    for (const thumb of strip.children) {
      const chosen = Number(thumb.dataset.item) === now.item;
      thumb.setAttribute("aria-pressed", chosen);
      thumb.tabIndex = chosen ? 0 : -1;
      if (!chosen) continue;
      const middle = thumb.offsetLeft + thumb.offsetWidth / 2 - strip.clientWidth / 2;
      const out = thumb.offsetLeft < strip.scrollLeft;
      if (out || thumb.offsetLeft + thumb.offsetWidth > strip.scrollLeft + strip.clientWidth) strip.scrollLeft = middle;
    }
  }

  // ---- layout that does not change with the step

  // the same rows in the same order on both sides and at all steps: bars grow and shrink in place
  function shownPlaces() {
    const places = now.set.shown[now.item].map((_, place) => place);
    if (now.set.classes.length <= ALL) return places;
    const peak = (place) => {
      if (now.set.shown[now.item][place] === now.set.labels[now.item]) return 2;
      const all = sides.flatMap(({ network }) =>
        Array.from({ length: network.steps }, (_, step) => network.probability(step + 1, now.item, place)),
      );
      return Math.max(...all);
    };
    const peaks = places.map(peak);
    return places.sort((a, b) => peaks[b] - peaks[a]).slice(0, ROWS).sort((a, b) => a - b);
  }

  function layBars(side, places) {
    const label = now.set.labels[now.item];
    side.rows = places.map((place) => {
      const shown = now.set.shown[now.item][place];
      return row(side, short(className(shown), 26), className(shown), shown === label, place);
    });
    const others = now.set.classes.length - places.length;
    if (others > 0) side.rows.push(row(side, `${others} others`, `${others} other classes together`, false, -1));
    side.bars.replaceChildren(...side.rows.map((each) => each.root));
  }

  function row(side, name, title, isTrue, place) {
    const root = make("div", isTrue ? "bar true" : "bar");
    const label = root.appendChild(make("span", "class", name));
    label.title = title;
    if (isTrue) label.appendChild(make("span", "tag", "true"));
    const fill = root.appendChild(make("span", "track")).appendChild(make("span", "fill"));
    return { root, fill, value: root.appendChild(make("span", "value")), place };
  }

  const along = () => now.width - 50; // length of the time axis
  const across = (step) => 40 + along() * (now.steps > 1 ? (step - 1) / (now.steps - 1) : 0.5);
  const up = (share) => 76 - 66 * share;

  function layPlot(side, place) {
    side.plot.setAttribute("viewBox", `0 0 ${now.width} 96`);
    const parts = [0, 0.5, 1].flatMap((share) => {
      const text = drawn("text", { x: 34, y: up(share) + 3.5, class: "axis end" });
      text.textContent = `${100 * share} %`;
      return [drawn("path", { d: `M40 ${up(share)}H${40 + along()}`, class: "grid" }), text];
    });
    for (const step of new Set([1, now.steps])) {
      const text = drawn("text", { x: across(step), y: 92, class: step === 1 ? "axis" : "axis end" });
      text.textContent = step === 1 ? "step 1" : step;
      parts.push(text);
    }
    const others = sides.filter((other) => other !== side && !other.root.hidden);
    for (const { network } of [...others, side]) {
      const points = Array.from(
        { length: network.steps },
        (_, step) => `${across(step + 1).toFixed(1)} ${up(network.probability(step + 1, now.item, place)).toFixed(1)}`,
      );
      const line = { d: `M${points.join("L")}`, stroke: network.color, class: network === side.network ? "line" : "line pale" };
      parts.push(drawn("path", line));
    }
    side.cursor = drawn("path", { class: "cursor" });
    side.dot = drawn("circle", { r: 4.5, fill: side.network.color });
    side.truth = place;
    side.plot.replaceChildren(...parts, side.cursor, side.dot);
  }

  function layBlocks(side) {
    side.stages = Array.from({ length: side.network.stages }, (_, stage) => {
      const root = make("div", "block");
      const canvas = root.appendChild(make("canvas", ""));
      canvas.width = canvas.height = side.network.side;
      const fill = root.appendChild(make("span", "track")).appendChild(make("span", "fill"));
      root.appendChild(make("span", "number", stage ? String(stage) : "stem"));
      return { root, fill, pen: canvas.getContext("2d") };
    });
    side.blocks.replaceChildren(...side.stages.map((each) => each.root));
    side.shades = shades(side.network.color);
  }

  function lay() {
    const { labels, shown } = now.set;
    const label = labels[now.item];
    const places = shownPlaces();
    now.width = sides[0].plot.clientWidth || now.width; // text in the plot is as large as on the page
    for (const side of sides) {
      side.root.style.setProperty("--model", side.network.color);
      side.printed.textContent = side.network.name;
      layBars(side, places);
      layPlot(side, shown[now.item].indexOf(label));
      layBlocks(side);
    }
    sprite(at("image"), now.item);
    at("image").setAttribute("aria-label", `Image ${now.item + 1}`);
    at("position").textContent = `image ${now.order.indexOf(now.item) + 1} of ${labels.length}`;
    at("truth").textContent = short(className(label), 40);
    at("truth").title = className(label);
    markThumb();
    draw();
  }

  // ---- one step

  function drawBlock(side, stage, step) {
    const { network, shades } = side;
    const { root, fill, pen } = side.stages[stage];
    const map = network.map(step, now.item, stage);
    const image = pen.createImageData(network.side, network.side);
    map.forEach((shade, place) => image.data.set([...shades[shade], 255], 4 * place));
    pen.putImageData(image, 0, 0);
    const near = network.convergence(step, now.item, stage);
    const before = step > 1 ? network.map(step - 1, now.item, stage) : null;
    const changed = before ? map.some((shade, place) => shade !== before[place]) : near > 0;
    root.classList.toggle("changed", changed && now.step <= network.steps);
    root.title = `${stage ? `Block ${stage}` : "Stem"}: ${percent(near)} of the way to its final value`;
    fill.style.width = `${100 * near}%`;
  }

  function drawSide(side) {
    const { network } = side;
    const step = Math.min(now.step, network.steps);
    const prediction = network.prediction(step, now.item);
    const right = prediction === now.set.labels[now.item];
    const sure = percent(network.confidence(step, now.item));
    const name = make("b", "", short(className(prediction), 40));
    const judged = make("span", right ? "right" : "wrong", right ? "✓ correct" : "✗ wrong");
    side.statement.replaceChildren("Predicts ", name, ` with ${sure} `, judged);
    if (now.step > network.steps) side.statement.append(make("span", "finished", `finished at step ${network.steps}`));
    side.message = `${network.name} predicts ${className(prediction)} with ${sure}, ${right ? "correct" : "wrong"}.`;
    let left = 1;
    for (const { root, fill, value, place } of side.rows) {
      const share = place < 0 ? Math.max(0, left) : network.probability(step, now.item, place);
      left -= share;
      fill.style.width = `${100 * share}%`;
      value.textContent = percent(share);
      root.classList.toggle("predicted", place >= 0 && now.set.shown[now.item][place] === prediction);
    }
    side.cursor.setAttribute("d", `M${across(step)} ${up(1)}V${up(0)}`);
    side.dot.setAttribute("cx", across(step));
    side.dot.setAttribute("cy", up(network.probability(step, now.item, side.truth)));
    side.stages.forEach((_, stage) => drawBlock(side, stage, step));
  }

  function draw() {
    for (const side of sides) drawSide(side);
    const slider = at("time");
    slider.max = now.steps;
    slider.value = now.step;
    slider.style.setProperty("--done", now.steps > 1 ? `${(100 * (now.step - 1)) / (now.steps - 1)}%` : "100%");
    at("step").textContent = `step ${now.step} of ${now.steps}`;
    // the text for screen readers changes when playback stops
    const messages = sides.filter(({ root }) => !root.hidden).map((side) => side.message);
    if (!now.timer) at("message").textContent = `Step ${now.step} of ${now.steps}. ${messages.join(" ")}`;
  }

  // ---- time

  function go(step) {
    now.step = Math.max(1, Math.min(now.steps, step));
    draw();
  }

  function pause() {
    clearInterval(now.timer);
    now.timer = 0;
    box.classList.remove("playing");
    at("play").setAttribute("aria-label", "Play");
    at("play").querySelector("path").setAttribute("d", "M7 4.5v15l13-7.5z");
    draw();
  }

  function play() {
    clearInterval(now.timer);
    if (now.step >= now.steps) now.step = 1;
    now.timer = setInterval(() => {
      go(now.step + 1);
      if (now.step >= now.steps) pause();
    }, 1000 / Number(at("speed").value));
    box.classList.add("playing");
    at("play").setAttribute("aria-label", "Pause");
    at("play").querySelector("path").setAttribute("d", "M6 5h4v14H6zM14 5h4v14h-4z");
    draw();
  }

  const toggle = () => (now.timer ? pause() : play());
  const jump = (step) => {
    pause();
    go(step);
  };

  // ---- choices

  function pick(item) {
    now.item = item;
    lay();
  }

  function pickNext(by) {
    const place = now.order.indexOf(now.item) + by;
    pick(now.order[(place + now.order.length) % now.order.length]);
    if (at("strip").contains(document.activeElement)) at("strip").querySelector('[tabindex="0"]').focus();
  }

  // swapped in together, and only if no other choice was made in the meantime
  async function load(set, numbers) {
    const request = ++now.request;
    const chosen = await Promise.all(numbers.map((number) => networkOf(set, number)));
    if (request !== now.request) return false;
    sides.forEach((side, place) => {
      side.network = chosen[place];
    });
    now.set = set;
    now.steps = Math.max(...chosen.map(({ steps }) => steps));
    now.step = Math.min(now.step, now.steps);
    layStrip();
    return true;
  }

  async function pickModels() {
    const numbers = sides.map(({ select }) => Number(select.value));
    if (await load(now.set, numbers)) lay();
  }

  async function pickSet(number) {
    const set = sets[number];
    const names = set.models.map(({ model }) => model);
    if (!(await load(set, [0, Math.min(1, names.length - 1)]))) return;
    sides.forEach((side, place) => {
      options(side.select, names);
      side.select.value = Math.min(place, names.length - 1);
    });
    sides[1].root.hidden = names.length < 2;
    openOnLargestDifference();
    lay();
  }

  // open on the image and step at which the two networks differ most, so that there is something to see
  function openOnLargestDifference() {
    const [left, right] = sides.map(({ network }) => network);
    let largest = -1;
    for (const item of now.order) {
      const place = now.set.shown[item].indexOf(now.set.labels[item]);
      for (let step = 1; step <= now.steps; step++) {
        const apart = Math.abs(left.probability(step, item, place) - right.probability(step, item, place));
        if (apart > largest) [largest, now.item, now.step] = [apart, item, step];
      }
    }
  }

  // ---- mouse and keyboard

  addEventListener("resize", () => sides[0].network && lay());
  at("play").addEventListener("click", toggle);
  at("back").addEventListener("click", () => jump(now.step - 1));
  at("on").addEventListener("click", () => jump(now.step + 1));
  at("time").addEventListener("input", (event) => jump(Number(event.target.value)));
  at("speed").addEventListener("change", () => now.timer && play());
  at("sort").addEventListener("change", () => {
    layStrip();
    markThumb();
  });
  at("set").addEventListener("change", (event) => pickSet(Number(event.target.value)));
  at("strip").addEventListener("click", (event) => {
    const thumb = event.target.closest(".thumb");
    if (thumb) pick(Number(thumb.dataset.item));
  });
  for (const side of sides) {
    side.select.addEventListener("change", pickModels);
    side.plot.addEventListener("click", (event) => {
      const { left, width } = side.plot.getBoundingClientRect();
      const place = ((event.clientX - left) / width) * now.width - 40;
      jump(1 + Math.round((place / along()) * (now.steps - 1)));
    });
  }

  const keys = {
    " ": toggle,
    ArrowLeft: () => jump(now.step - 1),
    ArrowRight: () => jump(now.step + 1),
    Home: () => jump(1),
    End: () => jump(now.steps),
    ArrowUp: () => pickNext(-1),
    ArrowDown: () => pickNext(1),
    "[": () => pickNext(-1),
    "]": () => pickNext(1),
  };
  box.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (!Object.hasOwn(keys, key) || event.ctrlKey || event.altKey || event.metaKey) return;
    // controls that use the key themselves keep it
    if (target.tagName === "SELECT") return;
    if (target.type === "range" && (key.startsWith("Arrow") || key === "Home" || key === "End")) return;
    if (key === " " && target.tagName === "BUTTON" && !target.classList.contains("thumb")) return;
    event.preventDefault();
    keys[key]();
  });

  options(at("set"), sets.map(({ data }) => data));
  at("set-label").hidden = sets.length < 2;
  pickSet(0).catch((error) => {
    box.hidden = true;
    at("failed").hidden = false;
    at("failed").textContent = `The explorer does not work in this browser (${error.message}): try a newer one.`;
  });
})();
