"use strict";
// The predictions and activations of a network for every image and step, from packed bytes; unpacked on first use.
const unpacker = (colors) => {
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
    const convergence = items * (3 + kept);
    const maps = convergence + items * stages;
    // after its last step a network keeps its output
    const from = (step, place) => (Math.min(step, model.steps) - 1) * width + place;
    const network = {
      name: model.model,
      color: colors.get(model.model) ?? "#808080",
      steps: model.steps,
      stages,
      side: model.side,
      prediction: (step, item) => bytes[from(step, 2 * item)] + 256 * bytes[from(step, 2 * item + 1)],
      confidence: (step, item) => bytes[from(step, 2 * items + item)] / 255,
      probability: (step, item, place) => bytes[from(step, 3 * items + item * kept + place)] / 255,
      convergence: (step, item, stage) => bytes[from(step, convergence + item * stages + stage)] / 255,
      map: (step, item, stage) => {
        const first = from(step, maps + (item * stages + stage) * area);
        return bytes.subarray(first, first + area);
      },
    };
    network.settled = set.labels.map((label, item) => settled(network, item, label));
    return network;
  }

  // the first step from which on the prediction is correct; Infinity if the last one is wrong
  function settled(network, item, label) {
    let step = network.steps + 1;
    while (step > 1 && network.prediction(step - 1, item) === label) step--;
    return step > network.steps ? Infinity : step;
  }

  const cache = new Map();
  return (set, number) => {
    const model = set.models[number];
    if (!cache.has(model)) cache.set(model, unpacked(set, model));
    return cache.get(model);
  };
};
