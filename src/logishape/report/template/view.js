// One view: a plane through the crosshair's point that can be scrolled along its normal.

const SAMPLE_MM = 0.05, STEP_MM = 0.1, PAGE_MM = 0.5;
const COLOURS = { segmentation: "#ff5c5c", shape: "#ffd23f", band: "#4dc3ff", crosshair: "#7dff9a" };
const BAND = [77, 195, 255];

// state: what all views share (viewer.js). moved: told a new point.
function makeView(spec, volumes, state, moved) {
  const element = document.getElementById("view-template").content.firstElementChild.cloneNode(true);
  const view = {
    spec, volumes, state, element,
    canvas: element.querySelector("canvas"),
    slider: element.querySelector("input"),
    place: element.querySelector("output"),
    image: null, samples: null, offset: NaN, wheeled: 0, moved,
  };
  element.dataset.view = spec.name;
  element.querySelector("figcaption").textContent = spec.title;
  view.canvas.setAttribute("aria-label", `${spec.title}: slice of the CT with contours`);
  view.slider.setAttribute("aria-label", `Slice of the view: ${spec.title}`);
  Object.assign(view.slider, { min: -spec.reach, max: spec.reach, step: STEP_MM });
  for (const [edge, word] of Object.entries(spec.edges)) element.querySelector(`.${edge}`).textContent = word;
  listen(view);
  return view;
}

// How far the plane through a point lies from the view's middle, along its normal (mm).
function offsetOf(view, point) {
  return dot(minus(point, view.spec.middle), view.spec.normal);
}

function planeOf(view) {
  const { middle, right, up, half } = view.spec;
  return { middle: along(middle, offsetOf(view, view.state.point), view.spec.normal), right, up, half, step: SAMPLE_MM };
}

// The crosshair's point, moved along the view's normal.
function scroll(view, mm) {
  const before = offsetOf(view, view.state.point);
  const after = Math.min(view.spec.reach, Math.max(-view.spec.reach, before + mm));
  view.moved(along(view.state.point, after - before, view.spec.normal));
}

function draw(view) {
  const plane = planeOf(view);
  const { columns, rows } = sizeOf(plane);
  const offset = offsetOf(view, view.state.point);
  if (Math.abs(offset - view.offset) > 1e-6 || view.samples === null) {
    view.samples = Object.fromEntries(
      Object.entries(view.volumes).map(([name, volume]) => [name, sampleOn(volume, plane)]),
    );
    view.lines = null;
    view.offset = offset;
  }
  view.lines ??= {
    segmentation: contours(view.samples.segmentation, columns, rows, 0.5),
    shape: contours(view.samples.level, columns, rows, 0),
    band: [0.05, 0.95].flatMap((level) => contours(view.samples.marginal, columns, rows, level)),
  };
  drawImage(view, columns, rows);
  drawLines(view, columns);
  view.slider.value = offset.toFixed(1);
  view.place.textContent = offsetWords(offset, view.spec.ends);
  view.slider.setAttribute("aria-valuetext", view.place.textContent);
}

function offsetWords(offset, [back, forth]) {
  const mm = Math.abs(offset).toFixed(1);
  return mm === "0.0" ? "0.0 mm" : `${mm} mm to ${offset < 0 ? back : forth}`;
}

function drawImage(view, columns, rows) {
  if (view.image === null) {
    view.image = document.createElement("canvas");
    Object.assign(view.image, { width: columns, height: rows });
  }
  const context = view.image.getContext("2d");
  const pixels = context.createImageData(columns, rows);
  const { window, overlay, ramps, shown } = view.state;
  paint(view.samples, { window, overlay, ramps, band: shown.band ? BAND : null }, pixels);
  context.putImageData(pixels, 0, 0);
  fitCanvas(view.canvas, rows / columns);
  view.canvas.getContext("2d").drawImage(view.image, 0, 0, view.canvas.width, view.canvas.height);
}

// As many pixels as the screen shows.
function fitCanvas(canvas, ratio) {
  const width = Math.max(200, Math.round((canvas.clientWidth || 400) * Math.min(devicePixelRatio || 1, 3)));
  const height = Math.round(width * ratio);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
}

function drawLines(view, columns) {
  const { shown } = view.state;
  const context = view.canvas.getContext("2d");
  const zoom = view.canvas.width / columns, thin = Math.max(1, view.canvas.width / 330);
  if (shown.band) stroke(context, view.lines.band, zoom, COLOURS.band, 0.6 * thin, []);
  if (shown.segmentation) stroke(context, view.lines.segmentation, zoom, COLOURS.segmentation, 1.4 * thin, []);
  if (shown.shape) stroke(context, view.lines.shape, zoom, COLOURS.shape, 1.4 * thin, [5 * thin, 4 * thin]);
  if (shown.crosshair) drawCrosshair(view, context, thin);
  drawScale(view, context, thin);
}

function stroke(context, lines, zoom, colour, width, dashes) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dashes);
  context.beginPath();
  for (const line of lines) {
    line.forEach(([column, row], k) => {
      const place = [(column + 0.5) * zoom, (row + 0.5) * zoom];
      if (k === 0) context.moveTo(...place);
      else context.lineTo(...place);
    });
  }
  context.stroke();
  context.setLineDash([]);
}

// Two lines with a gap around the point itself.
function drawCrosshair(view, context, thin) {
  const { width, height } = view.canvas;
  const [x, y] = placeOf(view, view.state.point), gap = 8 * thin;
  context.strokeStyle = COLOURS.crosshair;
  context.lineWidth = 0.7 * thin;
  context.beginPath();
  for (const [x0, y0, x1, y1] of [
    [0, y, x - gap, y], [x + gap, y, width, y], [x, 0, x, y - gap], [x, y + gap, x, height],
  ]) {
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
  }
  context.stroke();
}

function drawScale(view, context, thin) {
  const { width, height } = view.canvas;
  const length = (2 / (2 * view.spec.half[0])) * width, left = 0.03 * width, bottom = 0.965 * height;
  const words = ["2 mm", left + length / 2, bottom - 5 * thin];
  context.font = `${11 * thin}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.lineJoin = "round";
  context.fillStyle = "white";
  for (const [colour, wider] of [["black", 2 * thin], ["white", 0]]) { // its dark edge shows it on bright bone
    context.strokeStyle = colour;
    context.lineWidth = 2 * thin + wider;
    context.beginPath();
    context.moveTo(left, bottom);
    context.lineTo(left + length, bottom);
    context.stroke();
    if (wider > 0) context.strokeText(...words);
    else context.fillText(...words);
  }
}

// The crosshair moved within the plane, as far as the picture goes.
function shift(view, direction, mm) {
  const { middle, right, half } = view.spec, { point } = view.state;
  const before = dot(minus(point, middle), direction), limit = half[direction === right ? 0 : 1];
  const after = Math.min(limit, Math.max(-limit, before + mm));
  view.moved(along(point, after - before, direction));
}

// Where a point of the world is seen on the canvas, in its pixels.
function placeOf(view, point) {
  const { middle, right, up, half } = view.spec;
  const from = minus(point, middle), { width, height } = view.canvas;
  return [
    ((dot(from, right) + half[0]) / (2 * half[0])) * width, ((half[1] - dot(from, up)) / (2 * half[1])) * height,
  ];
}

// The point of the world under a place of the window, such as that of the mouse or finger.
function pointUnder(view, { clientX, clientY }) {
  const box = view.canvas.getBoundingClientRect();
  const { right, up, half } = view.spec, plane = planeOf(view);
  const across = ((clientX - box.left) / box.width) * 2 * half[0] - half[0];
  const upward = half[1] - ((clientY - box.top) / box.height) * 2 * half[1];
  return along(along(plane.middle, across, right), upward, up);
}
