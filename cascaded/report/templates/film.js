"use strict";
// What a network did with every image at every step, from its packed bytes; unpacked when it is first asked for.
const films = (colours) => {
  async function inflated(text) {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function unpacked(set, model) {
    const bytes = await inflated(model.frames);
    const [items, kept] = [set.labels.length, set.shown[0].length];
    const [stages, area] = [model.stages, model.side ** 2];
    const width = items * (3 + kept + stages * (1 + area));
    for (let i = width; i < bytes.length; i++) bytes[i] += bytes[i - width]; // only differences are kept
    const nearness = items * (3 + kept);
    const maps = nearness + items * stages;
    // after its last step a network holds it
    const from = (step, place) => (Math.min(step, model.steps) - 1) * width + place;
    const film = {
      name: model.model,
      colour: colours.get(model.model) ?? "#808080",
      steps: model.steps,
      stages,
      side: model.side,
      answer: (step, item) => bytes[from(step, 2 * item)] + 256 * bytes[from(step, 2 * item + 1)],
      confidence: (step, item) => bytes[from(step, 2 * items + item)] / 255,
      probability: (step, item, place) => bytes[from(step, 3 * items + item * kept + place)] / 255,
      nearness: (step, item, stage) => bytes[from(step, nearness + item * stages + stage)] / 255,
      map: (step, item, stage) => {
        const first = from(step, maps + (item * stages + stage) * area);
        return bytes.subarray(first, first + area);
      },
    };
    film.settled = set.labels.map((label, item) => settled(film, item, label));
    return film;
  }

  // the step from which on the answer is right; one that is wrong at the end comes after all others
  function settled(film, item, label) {
    let step = film.steps + 1;
    while (step > 1 && film.answer(step - 1, item) === label) step--;
    return step > film.steps ? Infinity : step;
  }

  const known = new Map();
  return (set, number) => {
    const model = set.models[number];
    if (!known.has(model)) known.set(model, unpacked(set, model));
    return known.get(model);
  };
};
