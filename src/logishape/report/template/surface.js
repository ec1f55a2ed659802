// The fitted surface in three dimensions, by the plotly script that the page carries.

const COLOURINGS = {
  angle_degrees: { words: "angle from the round window, degrees", ramp: "Viridis" },
  frequency_hz: { words: "frequency (Greenwood), Hz", ramp: "Plasma", isLog: true },
  sd_mm: {
    words: "SD of the surface, mm", ramp: [[0, "rgb(49,104,189)"], [0.5, "rgb(245,245,220)"], [1, "rgb(190,30,45)"]],
    range: [0, 0.2],
  },
};
const FREQUENCIES = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000];
const AXIS_MM = [-2, 6.5], TICK_MM = 1.1, ARM_MM = 2;
const LINE_COLOUR = "#d62728", AXIS_COLOUR = "#2ca02c";

// Calls `shown` before it is drawn; without WebGL the still picture stays.
async function startSurface(surface, shown) {
  if (!hasWebGL() || typeof Plotly === "undefined") return;
  const mesh = await readMesh(surface);
  const place = document.getElementById("surface"), choice = document.getElementById("colouring");
  for (const option of choice.options) option.disabled = !(option.value in mesh.values);
  shown(); // the place needs its size
  const traces = [drawnMesh(mesh, choice.value), lineOf(surface), ticksOf(surface), axisOf(surface), armsOf(mesh)];
  await Plotly.newPlot(place, traces, layoutOf(surface), {
    displaylogo: false, responsive: true, modeBarButtonsToRemove: ["toImage", "resetCameraLastSave3d"],
  });
  sortFaces(place, mesh);
  place.on("plotly_relayout", () => sortFaces(place, mesh));
  choice.addEventListener("change", () => {
    const { intensity, colorscale, cmin, cmax, colorbar } = drawnMesh(mesh, choice.value);
    Plotly.restyle(place, { intensity: [intensity], colorscale: [colorscale], cmin, cmax, colorbar: [colorbar] }, [0]);
  });
  const through = document.getElementById("see-through");
  through.addEventListener("change", () => Plotly.restyle(place, { opacity: opacityNow() }, [0]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    Plotly.relayout(place, { "font.color": textColour() });
  });
}

function hasWebGL() {
  return document.createElement("canvas").getContext("webgl") !== null;
}

async function readMesh(surface) {
  const [vertices, faces] = await Promise.all([unpack(surface.vertices), unpack(surface.faces)]);
  const values = {};
  for (const [name, packed] of Object.entries(surface.values)) values[name] = await unpack(packed);
  return { vertices, faces, values };
}

function column(numbers, k) {
  return numbers.filter((_, place) => place % 3 === k);
}

function drawnMesh({ vertices, faces, values }, name) {
  const { words, ramp, isLog, range } = COLOURINGS[name];
  const intensity = isLog ? values[name].map(Math.log10) : values[name];
  const [least, most] = range ?? [intensity.reduce((a, b) => Math.min(a, b)), intensity.reduce((a, b) => Math.max(a, b))];
  const ticks = isLog ? { tickvals: FREQUENCIES.map(Math.log10), ticktext: FREQUENCIES.map(String) } : {};
  return {
    type: "mesh3d", intensity, colorscale: ramp, cmin: least, cmax: most, opacity: opacityNow(), hoverinfo: "skip",
    x: column(vertices, 0), y: column(vertices, 1), z: column(vertices, 2),
    i: column(faces, 0), j: column(faces, 1), k: column(faces, 2),
    lighting: { ambient: 0.6, diffuse: 0.6, specular: 0.1, roughness: 0.8 },
    colorbar: { title: { text: words, side: "right" }, thickness: 12, len: 0.8, x: 1, ...ticks },
  };
}

function opacityNow() {
  return document.getElementById("see-through").checked ? 0.55 : 1;
}

// Faces from the farthest to the nearest, so that what lies behind shines through; anew after each turn.
function sortFaces(place, { vertices, faces }) {
  const { eye } = place._fullLayout.scene._scene.getCamera();
  const toEye = [eye.x, eye.y, eye.z];
  const depth = (face) => {
    let sum = 0;
    for (let corner = 0; corner < 3; corner++) {
      const at = 3 * faces[3 * face + corner];
      sum += vertices[at] * toEye[0] + vertices[at + 1] * toEye[1] + vertices[at + 2] * toEye[2];
    }
    return sum;
  };
  const depths = Float32Array.from({ length: faces.length / 3 }, (_, face) => depth(face));
  const order = Uint32Array.from(depths.keys()).sort((a, b) => depths[a] - depths[b]);
  const corner = (k) => [order.map((face) => faces[3 * face + k])];
  Plotly.restyle(place, { i: corner(0), j: corner(1), k: corner(2) }, [0]);
}

// A trace through points, with gaps at null.
function pathOf(points) {
  const [x, y, z] = [0, 1, 2].map((k) => points.map((point) => point && point[k]));
  return { type: "scatter3d", x, y, z, hoverinfo: "skip" };
}

function lineOf(surface) {
  const { angle, points } = surface.line;
  return {
    ...pathOf(points), mode: "lines", name: "centreline", line: { color: LINE_COLOUR, width: 5 },
    text: angle.map((one) => `${one.toFixed(0)}°`), hoverinfo: "text",
  };
}

// Lines from the centreline outwards every 90 degrees, with their angle.
function ticksOf(surface) {
  const { angle, points } = surface.line, ends = [], words = [];
  for (let degrees = 0; degrees <= angle.at(-1); degrees += 90) {
    const after = Math.max(1, angle.findIndex((one) => one >= degrees));
    const share = (degrees - angle[after - 1]) / (angle[after] - angle[after - 1]);
    const centre = along(points[after - 1], share, minus(points[after], points[after - 1]));
    ends.push(centre, along(centre, TICK_MM, awayFromAxis(surface, centre)), null);
    words.push("", `${degrees}°`, "");
  }
  return {
    ...pathOf(ends), mode: "lines+text", name: "every 90°", text: words, textfont: { size: 11 },
    line: { color: LINE_COLOUR, width: 3 },
  };
}

function awayFromAxis(surface, point) {
  const from = minus(point, surface.origin), z = surface.axes[2];
  const across = along(from, -dot(from, z), z);
  return across.map((one) => one / Math.max(Math.hypot(...across), 1e-6));
}

function axisOf(surface) {
  const ends = AXIS_MM.map((mm) => along(surface.origin, mm, surface.axes[2]));
  return {
    ...pathOf(ends), mode: "lines+text", name: "modiolar axis", text: ["", "apex"], textfont: { size: 12 },
    line: { color: AXIS_COLOUR, width: 6, dash: "dash" },
  };
}

// Three arms of 2 mm beside the surface that say where right, front and head are.
function armsOf({ vertices }) {
  const corner = [0, 1, 2].map((k) => column(vertices, k).reduce((a, b) => Math.min(a, b)));
  const ends = [[ARM_MM, 0, 0], [0, ARM_MM, 0], [0, 0, ARM_MM]].flatMap((arm) => [corner, along(corner, 1, arm), null]);
  return {
    ...pathOf(ends), mode: "lines+text", name: "arms of 2 mm", text: ["", "right", "", "", "front", "", "", "head"],
    textfont: { size: 12 }, line: { color: "#888", width: 4 },
  };
}

// Seen from the apex and the side, in millimetres that are alike on all axes.
function layoutOf(surface) {
  const [, y, z] = surface.axes, hidden = { visible: false };
  const eye = along(along([0, 0, 0], 1.1, z), -0.7, y);
  return {
    margin: { l: 0, r: 0, t: 0, b: 0 }, paper_bgcolor: "rgba(0,0,0,0)", font: { color: textColour() },
    legend: { orientation: "h", x: 0, y: 0 },
    scene: {
      aspectmode: "data", xaxis: hidden, yaxis: hidden, zaxis: hidden, dragmode: "orbit",
      camera: { eye: { x: eye[0], y: eye[1], z: eye[2] }, up: { x: z[0], y: z[1], z: z[2] } },
    },
  };
}

function textColour() {
  return getComputedStyle(document.body).color;
}
