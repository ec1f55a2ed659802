// The fitted surface in three dimensions, by the plotly script that the page carries.

const COLOURINGS = {
  angle_degrees: { words: "angle from the round window, degrees" },
  frequency_hz: { words: "frequency (Greenwood), Hz", isLog: true },
  sd_mm: {
    words: "SD of the surface, mm", ramp: [[0, "rgb(49,104,189)"], [0.5, "rgb(245,245,220)"], [1, "rgb(190,30,45)"]],
    range: [0, 0.2],
  },
};
const FREQUENCIES = { 50: 50, 100: 100, 200: 200, 500: 500, 1000: "1k", 2000: "2k", 5000: "5k", 10000: "10k", 20000: "20k" };

const SPACE_MM = 12; // to each side of the middle of the surface

// Calls `shown` with true before it is drawn, and with false where it cannot be: the still picture stays.
async function startSurface(surface, shown) {
  if (!hasWebGL() || typeof Plotly === "undefined") return;
  try {
    shown(true); // the place needs its size
    await drawSurface(surface);
  } catch (error) {
    shown(false);
    throw error;
  }
}

async function drawSurface(surface) {
  const mesh = await readMesh(surface);
  const place = document.getElementById("surface"), choice = document.getElementById("colouring");
  for (const option of choice.options) option.disabled = !(option.value in mesh.values);
  const traces = [drawnMesh(mesh, choice.value), lineOf(surface), ticksOf(surface), axisOf(surface), armsOf(surface, mesh)];
  await Plotly.newPlot(place, traces, layoutOf(surface, mesh, place), {
    displaylogo: false, displayModeBar: false, responsive: true,
  });
  sortFaces(place, mesh);
  place.on("plotly_relayout", () => sortFaces(place, mesh));
  choice.addEventListener("change", () => {
    const { intensity, colorscale, cmin, cmax, colorbar } = drawnMesh(mesh, choice.value);
    Plotly.restyle(place, { intensity: [intensity], colorscale: [colorscale], cmin, cmax, colorbar: [colorbar] }, [0]);
  });
  const through = document.getElementById("see-through");
  through.addEventListener("change", () => Plotly.restyle(place, { opacity: opacityNow() }, [0]));
  listenToTurns(place, surface);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    const { font, scene } = layoutOf(surface, mesh, place);
    Plotly.relayout(place, { font, "scene.annotations": scene.annotations });
  });
}

function hasWebGL() {
  return document.createElement("canvas").getContext("webgl") !== null;
}

async function readMesh(surface) {
  const [vertices, faces] = await Promise.all([unpack(surface.vertices), unpack(surface.faces)]);
  const values = {};
  for (const [name, packed] of Object.entries(surface.values)) values[name] = await unpack(packed);
  return { vertices, faces, values, ramps: surface.ramps };
}

function column(numbers, k) {
  return numbers.filter((_, place) => place % 3 === k);
}

function ends(numbers) {
  return [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))];
}

function drawnMesh({ vertices, faces, values, ramps }, name) {
  const { words, ramp, isLog, range } = COLOURINGS[name];
  const intensity = isLog ? values[name].map(Math.log10) : values[name];
  const [least, most] = range ?? ends(intensity);
  const ticks = isLog
    ? { tickvals: Object.keys(FREQUENCIES).map(Math.log10), ticktext: Object.values(FREQUENCIES).map(String) } : {};
  return {
    type: "mesh3d", intensity, colorscale: ramp ?? scaleOf(ramps[name]), cmin: least, cmax: most, opacity: opacityNow(), hoverinfo: "skip",
    x: column(vertices, 0), y: column(vertices, 1), z: column(vertices, 2),
    i: column(faces, 0), j: column(faces, 1), k: column(faces, 2),
    lighting: { ambient: 0.6, diffuse: 0.6, specular: 0.1, roughness: 0.8 },
    colorbar: {
      title: { text: words, side: "top" }, orientation: "h", thickness: 12, len: 0.9, x: 0.5, y: 0, yanchor: "top",
      tickangle: 0, ...ticks,
    },
  };
}

// A ramp of the page as plotly reads it.
function scaleOf(ramp) {
  return ramp.map((colour, k) => [k / (ramp.length - 1), `rgb(${colour.join(",")})`]);
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

// Seen from the apex and the side, in millimetres that are alike on all axes.
function layoutOf(surface, mesh, place) {
  const middle = middleOf(surface, mesh);
  const [x, y, z] = middle.map((one) => ({ visible: false, range: [one - SPACE_MM, one + SPACE_MM] }));
  return {
    margin: { l: 0, r: 0, t: 0, b: 62 }, paper_bgcolor: "rgba(0,0,0,0)", font: { color: textColour() }, showlegend: false,
    scene: {
      aspectmode: "cube", xaxis: x, yaxis: y, zaxis: z, dragmode: "orbit",
      annotations: labelsOf(surface, mesh, place), camera: cameraOf(surface, "oblique", place),
    },
  };
}

// The middle of the surface's box along the spiral's axes: what the camera turns about.
function middleOf(surface, { vertices }) {
  return surface.axes.reduce((sum, axis) => {
    const places = Float64Array.from({ length: vertices.length / 3 }, (_, k) =>
      dot(minus(vertices.subarray(3 * k, 3 * k + 3), surface.origin), axis));
    const [least, most] = ends(places);
    return along(sum, (least + most) / 2, axis);
  }, surface.origin);
}

function textColour() {
  return getComputedStyle(document.body).color;
}
