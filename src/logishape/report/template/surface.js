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
const AXIS_MM = [-2, 6.5];

// Calls `shown` once it is drawn; without WebGL the still picture stays.
async function startSurface(surface, shown) {
  if (!hasWebGL() || typeof Plotly === "undefined") return;
  const [vertices, faces] = await Promise.all([unpack(surface.vertices), unpack(surface.faces)]);
  const values = {};
  for (const [name, packed] of Object.entries(surface.values)) values[name] = await unpack(packed);
  const place = document.getElementById("surface"), choice = document.getElementById("colouring");
  for (const option of choice.options) option.disabled = !(option.value in values);
  const mesh = meshOf(vertices, faces, values, choice.value);
  shown(); // it needs its size
  await Plotly.newPlot(place, [mesh, lineOf(surface), ticksOf(surface), axisOf(surface)], layoutOf(surface), {
    displaylogo: false, responsive: true, modeBarButtonsToRemove: ["toImage"],
  });
  choice.addEventListener("change", () => {
    const next = meshOf(vertices, faces, values, choice.value);
    const { intensity, colorscale, cmin, cmax, colorbar } = next;
    Plotly.restyle(place, {
      intensity: [intensity], colorscale: [colorscale], cmin, cmax, colorbar: [colorbar],
    }, [0]);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    Plotly.relayout(place, { "font.color": textColour() });
  });
}

function hasWebGL() {
  const canvas = document.createElement("canvas");
  return Boolean(canvas.getContext("webgl") ?? canvas.getContext("experimental-webgl"));
}

function column(numbers, k) {
  return numbers.filter((_, place) => place % 3 === k);
}

function meshOf(vertices, faces, values, name) {
  const { words, ramp, isLog, range } = COLOURINGS[name];
  const intensity = isLog ? values[name].map(Math.log10) : values[name];
  const [least, most] = range ?? intensity.reduce(([a, b], one) => [Math.min(a, one), Math.max(b, one)], [1e9, -1e9]);
  const ticks = isLog ? { tickvals: FREQUENCIES.map(Math.log10), ticktext: FREQUENCIES.map(String) } : {};
  return {
    type: "mesh3d", name: "surface", intensity, colorscale: ramp, cmin: least, cmax: most, flatshading: false,
    x: column(vertices, 0), y: column(vertices, 1), z: column(vertices, 2),
    i: column(faces, 0), j: column(faces, 1), k: column(faces, 2),
    opacity: 0.75, lighting: { ambient: 0.55, diffuse: 0.6, specular: 0.1 }, hoverinfo: "skip",
    colorbar: { title: { text: words, side: "right" }, thickness: 12, len: 0.8, x: 1, ...ticks },
  };
}

function pathOf(points) {
  return { type: "scatter3d", x: points.map((p) => p[0]), y: points.map((p) => p[1]), z: points.map((p) => p[2]) };
}

function lineOf(surface) {
  const { angle, points } = surface.line;
  return {
    ...pathOf(points), mode: "lines", name: "centreline", line: { color: "#d62728", width: 5 },
    text: angle.map((one) => `${one.toFixed(0)}°`), hoverinfo: "text",
  };
}

// Marks on the centreline every 90 degrees.
function ticksOf(surface) {
  const { angle, points } = surface.line, places = [], words = [];
  for (let degrees = 0; degrees <= angle.at(-1); degrees += 90) {
    const after = Math.max(1, angle.findIndex((one) => one >= degrees));
    const share = (degrees - angle[after - 1]) / (angle[after] - angle[after - 1]);
    places.push(along(points[after - 1], share, minus(points[after], points[after - 1])));
    words.push(`${degrees}°`);
  }
  return {
    ...pathOf(places), mode: "markers+text", name: "every 90°", text: words, hoverinfo: "text",
    marker: { size: 4, color: "#d62728" }, textfont: { size: 11 },
  };
}

function axisOf(surface) {
  const ends = AXIS_MM.map((mm) => along(surface.origin, mm, surface.axes[2]));
  return {
    ...pathOf(ends), mode: "lines+text", name: "modiolar axis", text: ["", "apex"], hoverinfo: "skip",
    line: { color: "#2ca02c", width: 6, dash: "dash" },
  };
}

// Seen from the apex and the side, in millimetres that are alike on all axes.
function layoutOf(surface) {
  const [x, y, z] = surface.axes;
  const axis = (title) => ({ title: { text: title }, showbackground: false, gridcolor: "rgba(128,128,128,0.3)" });
  const eye = along(along([0, 0, 0], 1.1, z), -1.0, y);
  return {
    margin: { l: 0, r: 0, t: 0, b: 0 }, paper_bgcolor: "rgba(0,0,0,0)", font: { color: textColour() },
    legend: { orientation: "h", x: 0, y: 0 },
    scene: {
      aspectmode: "data", xaxis: axis("x, right (mm)"), yaxis: axis("y, front (mm)"), zaxis: axis("z, head (mm)"),
      camera: { eye: { x: eye[0], y: eye[1], z: eye[2] }, up: { x: z[0], y: z[1], z: z[2] } },
    },
  };
}

function textColour() {
  return getComputedStyle(document.body).color;
}
