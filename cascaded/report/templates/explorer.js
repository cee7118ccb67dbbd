"use strict";
(() => {
  const ROWS = 6; // of bars, where there are more classes than can be shown
  const ALL = 10;
  const at = (id) => document.getElementById(`explorer-${id}`);
  const { sets, colours } = JSON.parse(at("data").textContent);
  const filmOf = films(new Map(Object.entries(colours)));
  const box = at("box");
  const sides = [...box.querySelectorAll(".side")].map((root) => ({
    root,
    select: root.querySelector("select"),
    printed: root.querySelector(".printed"),
    says: root.querySelector(".says"),
    bars: root.querySelector(".bars"),
    plot: root.querySelector(".plot"),
    blocks: root.querySelector(".blocks"),
    film: null,
  }));
  const now = { set: sets[0], item: 0, order: [], step: 1, steps: 1, timer: 0, width: 360, asked: 0 };

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
    const when = sides[0].film.settled;
    now.order = labels.map((_, item) => item);
    now.order.sort((a, b) => (bySettling ? when[a] - when[b] || 0 : 0) || labels[a] - labels[b] || a - b);
    const thumbs = now.order.map((item) => {
      const thumb = make("button", "thumb");
      const name = className(labels[item]);
      const told = when[item] === Infinity ? "never" : `step ${when[item]}`;
      const image = thumb.appendChild(make("span", "image"));
      thumb.appendChild(make("span", "below", bySettling ? told : short(name, 8)));
      thumb.type = "button";
      thumb.title = name;
      thumb.dataset.item = item;
      thumb.setAttribute("aria-label", `Image ${item + 1}, ${name}${bySettling ? `, right from ${told}` : ""}`);
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

  // ---- laying out what stays while time runs

  // the same rows in the same order on both sides and at all steps: bars grow and shrink in place
  function shownPlaces() {
    const places = now.set.shown[now.item].map((_, place) => place);
    if (now.set.classes.length <= ALL) return places;
    const peak = (place) => {
      if (now.set.shown[now.item][place] === now.set.labels[now.item]) return 2;
      const all = sides.flatMap(({ film }) =>
        Array.from({ length: film.steps }, (_, step) => film.probability(step + 1, now.item, place)),
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

  const along = () => now.width - 50; // what an axis of time is long
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
    for (const { film } of [...others, side]) {
      const points = Array.from(
        { length: film.steps },
        (_, step) => `${across(step + 1).toFixed(1)} ${up(film.probability(step + 1, now.item, place)).toFixed(1)}`,
      );
      const line = { d: `M${points.join("L")}`, stroke: film.colour, class: film === side.film ? "line" : "line pale" };
      parts.push(drawn("path", line));
    }
    side.cursor = drawn("path", { class: "cursor" });
    side.dot = drawn("circle", { r: 4.5, fill: side.film.colour });
    side.truth = place;
    side.plot.replaceChildren(...parts, side.cursor, side.dot);
  }

  function layBlocks(side) {
    side.stages = Array.from({ length: side.film.stages }, (_, stage) => {
      const root = make("div", "block");
      const canvas = root.appendChild(make("canvas", ""));
      canvas.width = canvas.height = side.film.side;
      const fill = root.appendChild(make("span", "track")).appendChild(make("span", "fill"));
      root.appendChild(make("span", "number", stage ? String(stage) : "stem"));
      return { root, fill, pen: canvas.getContext("2d") };
    });
    side.blocks.replaceChildren(...side.stages.map((each) => each.root));
    side.shades = shades(side.film.colour);
  }

  function lay() {
    const { labels, shown } = now.set;
    const label = labels[now.item];
    const places = shownPlaces();
    now.width = sides[0].plot.clientWidth || now.width; // its letters are as large as the page's
    for (const side of sides) {
      side.root.style.setProperty("--model", side.film.colour);
      side.printed.textContent = side.film.name;
      layBars(side, places);
      layPlot(side, shown[now.item].indexOf(label));
      layBlocks(side);
    }
    sprite(at("picture"), now.item);
    at("picture").setAttribute("aria-label", `Image ${now.item + 1}`);
    at("subject").textContent = `image ${now.order.indexOf(now.item) + 1} of ${labels.length}`;
    at("truth").textContent = short(className(label), 40);
    at("truth").title = className(label);
    markThumb();
    draw();
  }

  // ---- one step

  function drawBlock(side, stage, step) {
    const { film, shades } = side;
    const { root, fill, pen } = side.stages[stage];
    const map = film.map(step, now.item, stage);
    const picture = pen.createImageData(film.side, film.side);
    map.forEach((shade, place) => picture.data.set([...shades[shade], 255], 4 * place));
    pen.putImageData(picture, 0, 0);
    const near = film.nearness(step, now.item, stage);
    const before = step > 1 ? film.map(step - 1, now.item, stage) : null;
    const changed = before ? map.some((shade, place) => shade !== before[place]) : near > 0;
    root.classList.toggle("changed", changed && now.step <= film.steps);
    root.title = `${stage ? `Block ${stage}` : "Stem"}: ${percent(near)} of the way`;
    fill.style.width = `${100 * near}%`;
  }

  function drawSide(side) {
    const { film } = side;
    const step = Math.min(now.step, film.steps);
    const answer = film.answer(step, now.item);
    const right = answer === now.set.labels[now.item];
    const sure = percent(film.confidence(step, now.item));
    const name = make("b", "", short(className(answer), 40));
    const judged = make("span", right ? "right" : "wrong", right ? "✓ right" : "✗ wrong");
    side.says.replaceChildren("Says ", name, ` with ${sure} `, judged);
    if (now.step > film.steps) side.says.append(make("span", "held", `holds its last step, ${film.steps}`));
    side.told = `${film.name} says ${className(answer)} with ${sure}, ${right ? "right" : "wrong"}.`;
    let left = 1;
    for (const { root, fill, value, place } of side.rows) {
      const share = place < 0 ? Math.max(0, left) : film.probability(step, now.item, place);
      left -= share;
      fill.style.width = `${100 * share}%`;
      value.textContent = percent(share);
      root.classList.toggle("answer", place >= 0 && now.set.shown[now.item][place] === answer);
    }
    side.cursor.setAttribute("d", `M${across(step)} ${up(1)}V${up(0)}`);
    side.dot.setAttribute("cx", across(step));
    side.dot.setAttribute("cy", up(film.probability(step, now.item, side.truth)));
    side.stages.forEach((_, stage) => drawBlock(side, stage, step));
  }

  function draw() {
    for (const side of sides) drawSide(side);
    const slider = at("time");
    slider.max = now.steps;
    slider.value = now.step;
    slider.style.setProperty("--done", now.steps > 1 ? `${(100 * (now.step - 1)) / (now.steps - 1)}%` : "100%");
    at("step").textContent = `step ${now.step} of ${now.steps}`;
    // what is read aloud waits until time stands still
    const told = sides.filter(({ root }) => !root.hidden).map((side) => side.told);
    if (!now.timer) at("told").textContent = `Step ${now.step} of ${now.steps}. ${told.join(" ")}`;
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

  // all at once when it is there, and only if nothing else was asked for meanwhile
  async function load(set, numbers) {
    const asked = ++now.asked;
    const chosen = await Promise.all(numbers.map((number) => filmOf(set, number)));
    if (asked !== now.asked) return false;
    sides.forEach((side, place) => {
      side.film = chosen[place];
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
    now.item = now.order[0];
    now.step = mostTelling();
    lay();
  }

  // where the two differ most: a first look that shows what there is to see
  function mostTelling() {
    const [left, right] = sides.map(({ film }) => film);
    const place = now.set.shown[now.item].indexOf(now.set.labels[now.item]);
    const apart = (step) => Math.abs(left.probability(step, now.item, place) - right.probability(step, now.item, place));
    const steps = Array.from({ length: now.steps }, (_, step) => step + 1);
    return steps.reduce((best, step) => (apart(step) > apart(best) ? step : best), 1);
  }

  // ---- hands and keys

  addEventListener("resize", () => sides[0].film && lay());
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
    // what has a use for the key itself keeps it
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
