"use strict";
// Draws the charts of the page from the data in it, at the width that there is, and again when that changes.
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = ["--s0", "--s1", "--s2", "--s3", "--s4", "--s5"];
  const MARKED = 12; // a line of so few points shows where it was measured
  const HEAT = ["--heat0", "--heat1", "--heat2", "--heat3", "--heat4"];

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function node(parent, name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  function element(parent, name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  function shown(value) {
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1e6) return trimmed((value / 1e6).toFixed(size >= 1e7 ? 0 : 2)) + " M";
    if (size >= 1e4) return trimmed((value / 1e3).toFixed(size >= 1e5 ? 0 : 1)) + " k";
    if (size >= 100) return trimmed(value.toFixed(0));
    if (size >= 1) return trimmed(value.toFixed(2));
    return trimmed(value.toPrecision(3));
  }
  const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

  function ticks(low, high, wanted) {
    const span = high - low || 1;
    const rough = span / Math.max(1, wanted);
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
    const found = [];
    for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-6; index++) found.push(index * step);
    return found;
  }

  function logTicks(low, high) {
    const found = [];
    const parts = high / low > 2000 ? [1] : [1, 2, 5];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const part of parts) {
        const value = part * Math.pow(10, power);
        if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
      }
    }
    return found.length > 1 ? found : [low, high];
  }

  function colourOf(series, index) {
    if (series.role === "ideal") return style("--ideal");
    if (series.role === "muted") return style("--muted");
    return style(COLOURS[index % COLOURS.length]);
  }

  const colourOfMarks = (marks) => style(marks.role === "muted" ? "--muted" : "--bad");

  function legend(box, series, marked) {
    const list = element(box, "div", "legend");
    series.forEach((one, index) => {
      const item = element(list, "span");
      const key = node(item, "svg", { viewBox: "0 0 22 10", "aria-hidden": "true" });
      node(key, "line", {
        x1: 0, x2: 22, y1: 5, y2: 5, stroke: colourOf(one, index), "stroke-width": 2.5,
        "stroke-dasharray": one.role === "ideal" ? "5 4" : "none",
      });
      element(item, "span", "", one.name);
    });
    for (const marks of marked) {
      const item = element(list, "span");
      const key = node(item, "svg", { viewBox: "0 0 22 10", "aria-hidden": "true" });
      for (const at of [5, 11, 17]) node(key, "line", { x1: at, x2: at, y1: 1, y2: 9, stroke: colourOfMarks(marks), "stroke-width": 1.5 });
      element(item, "span", "", marks.name);
    }
  }

  function frame(box, height) {
    const width = Math.max(280, box.clientWidth);
    const svg = node(box, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    return { svg, width, height };
  }

  function lines(box, chart) {
    const marked = chart.marks.filter((marks) => marks.at.length);
    legend(box, chart.series, marked);
    const { svg, width, height } = frame(box, Math.min(340, Math.max(240, box.clientWidth * 0.42)));
    const points = chart.series.flatMap((series) => series.points);
    const left = 58, right = 14, top = 18, bottom = 40;
    let xLow = Math.min(...points.map((point) => point[0]));
    let xHigh = Math.max(...points.map((point) => point[0]));
    const yHigh = Math.max(1e-9, ...points.map((point) => point[1])) * 1.05;
    if (chart.log_x) xLow = Math.max(xLow, Math.min(...points.map((point) => point[0]).filter((x) => x > 0)));
    else xLow = Math.min(0, xLow);
    if (!Number.isFinite(xLow) || xHigh <= xLow) xHigh = xLow + 1;
    const warp = chart.log_x ? (x) => Math.log10(Math.max(x, xLow)) : (x) => x;
    const x = (value) => left + ((warp(value) - warp(xLow)) / (warp(xHigh) - warp(xLow))) * (width - left - right);
    const y = (value) => height - bottom - (value / yHigh) * (height - top - bottom);
    for (const value of ticks(0, yHigh, 5)) {
      node(svg, "line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) });
      node(svg, "text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value));
    }
    const marks = chart.log_x ? logTicks(xLow, xHigh) : ticks(xLow, xHigh, Math.max(3, width / 110));
    for (const value of marks) {
      node(svg, "line", { class: "axis", x1: x(value), x2: x(value), y1: height - bottom, y2: height - bottom + 4 });
      node(svg, "text", { x: x(value), y: height - bottom + 17, "text-anchor": "middle" }, shown(value));
    }
    node(svg, "line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom });
    node(svg, "text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, chart.x);
    node(svg, "text", { x: 0, y: 10 }, chart.y);
    for (const marks of marked) {
      for (const at of marks.at) {
        node(svg, "line", {
          x1: x(at), x2: x(at), y1: top, y2: marks.role === "muted" ? top + 8 : height - bottom,
          stroke: colourOfMarks(marks), "stroke-width": 1, "stroke-opacity": marks.role === "muted" ? 1 : 0.5,
        });
      }
    }
    chart.series.forEach((series, index) => {
      let path = "";
      series.points.forEach(([px, py], at) => {
        if (at === 0) path = `M${x(px)} ${y(py)}`;
        else if (series.step) path += `H${x(px)}V${y(py)}`;
        else path += `L${x(px)} ${y(py)}`;
      });
      node(svg, "path", {
        d: path, fill: "none", stroke: colourOf(series, index), "stroke-width": 2, "stroke-linejoin": "round",
        "stroke-dasharray": series.role === "ideal" ? "6 4" : "none",
      });
      if (series.points.length <= MARKED && series.role !== "ideal") {
        for (const [px, py] of series.points) node(svg, "circle", { cx: x(px), cy: y(py), r: 3, fill: colourOf(series, index) });
      }
    });
    const readout = element(box, "div", "readout");
    const cursor = node(svg, "line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
    follow(svg, width, (at) => {
      const part = Math.min(1, Math.max(0, (at - left) / (width - left - right)));
      const flat = warp(xLow) + part * (warp(xHigh) - warp(xLow));
      const value = chart.log_x ? Math.pow(10, flat) : flat;
      cursor.setAttribute("x1", x(value));
      cursor.setAttribute("x2", x(value));
      cursor.setAttribute("visibility", "visible");
      const read = chart.series.map((series) => `${series.name} ${shown(valueAt(series, value))}`);
      readout.textContent = `${shown(value)} ${unitOf(chart.x)}: ${read.join(" · ")}`;
    });
  }

  function unitOf(label) {
    const found = /\(([^)]*)\)\s*$/.exec(label);
    return found ? found[1] : "";
  }

  function valueAt(series, at) {
    let before = series.points[0];
    for (const point of series.points) {
      if (point[0] > at) {
        if (series.step || point[0] === before[0]) break;
        const part = (at - before[0]) / (point[0] - before[0]);
        return part < 0 ? 0 : before[1] + part * (point[1] - before[1]);
      }
      before = point;
    }
    return before ? before[1] : 0;
  }

  function follow(svg, width, told) {
    svg.addEventListener("pointermove", (event) => {
      const place = svg.getBoundingClientRect();
      told(((event.clientX - place.left) / place.width) * width, ((event.clientY - place.top) / place.width) * width);
    });
  }

  function heatColour(part) {
    const stops = HEAT.map(style).map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
    const place = Math.min(1, Math.max(0, part)) * (stops.length - 1);
    const index = Math.min(stops.length - 2, Math.floor(place));
    const mixed = stops[index].map((value, at) => Math.round(value + (stops[index + 1][at] - value) * (place - index)));
    return `rgb(${mixed.join(",")})`;
  }

  function heat(box, chart) {
    const greatest = Math.max(1e-9, ...chart.cells.flat().filter((value) => value !== null));
    const scale = element(box, "div", "legend");
    const key = element(scale, "span");
    element(key, "span", "", "0");
    const bar = node(key, "svg", { viewBox: "0 0 100 10", style: "width:120px" });
    for (let at = 0; at < 50; at++) node(bar, "rect", { x: at * 2, y: 0, width: 2.2, height: 10, fill: heatColour(at / 49) });
    element(key, "span", "", `${shown(greatest)} ${chart.unit}`);
    const square = (name, colour) => {
      if (!name) return;
      const item = element(scale, "span");
      const key = node(item, "svg", { viewBox: "0 0 22 10" });
      node(key, "rect", { x: 0.5, y: 0.5, width: 21, height: 9, fill: colour, stroke: style("--line") });
      element(item, "span", "", name);
    };
    square(chart.nothing, style("--nothing"));
    square(chart.absent, style("--absent"));
    const labelled = chart.rows.length <= 40;
    const longest = Math.max(...chart.rows.map((row) => row.length));
    const left = labelled ? Math.min(120, 12 + longest * 7) : 44;
    const right = 14, top = 18, bottom = 40;
    const row = labelled ? Math.max(9, Math.min(20, 300 / chart.rows.length)) : Math.max(1.5, 400 / chart.rows.length);
    const { svg, width, height } = frame(box, top + bottom + row * chart.rows.length);
    const low = Math.min(0, chart.columns[0]), high = chart.columns[chart.columns.length - 1];
    const x = (value) => left + ((value - low) / (high - low || 1)) * (width - left - right);
    const colours = new Map();
    const fill = (value) => {
      const level = Math.round((value / greatest) * 60);
      if (!colours.has(level)) colours.set(level, heatColour(level / 60));
      return colours.get(level);
    };
    chart.cells.forEach((cells, line) => {
      cells.forEach((value, column) => {
        const begin = x(chart.columns[column]);
        node(svg, "rect", {
          x: begin, y: top + line * row, width: x(chart.columns[column + 1]) - begin + 0.4, height: row + 0.4,
          fill: value === null ? style("--nothing") : value < 0 ? style("--absent") : fill(value),
        });
      });
      if (labelled && row >= 9) {
        const every = row >= 12 ? 1 : 2;
        if (line % every === 0) node(svg, "text", { x: left - 6, y: top + line * row + row / 2 + 4, "text-anchor": "end" }, chart.rows[line]);
      }
    });
    if (!labelled) {
      for (const line of ticks(1, chart.rows.length, 5)) {
        if (line >= 1) node(svg, "text", { x: left - 6, y: top + (line - 0.5) * row + 4, "text-anchor": "end" }, String(Math.round(line)));
      }
    }
    node(svg, "text", { x: 0, y: 10 }, chart.y);
    for (const value of ticks(low, high, Math.max(3, width / 110))) {
      node(svg, "line", { class: "axis", x1: x(value), x2: x(value), y1: height - bottom, y2: height - bottom + 4 });
      node(svg, "text", { x: x(value), y: height - bottom + 17, "text-anchor": "middle" }, shown(value));
    }
    node(svg, "text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, chart.x);
    const told = (cell) => (cell === null ? chart.nothing : cell < 0 ? chart.absent : `${shown(cell)} ${chart.unit}`);
    const readout = element(box, "div", "readout");
    follow(svg, width, (at, down) => {
      const line = Math.floor((down - top) / row);
      const value = low + ((at - left) / (width - left - right)) * (high - low);
      const column = chart.columns.findIndex((edge, index) => index + 1 < chart.columns.length && value < chart.columns[index + 1]);
      if (value < chart.columns[0]) return;
      if (line < 0 || line >= chart.rows.length || column < 0 || at < left) return;
      const cell = chart.cells[line][column];
      readout.textContent = `${chart.rows[line]}, ${shown(value)} ${unitOf(chart.x)}: ${told(cell)}`;
    });
  }

  function bars(box, chart) {
    const longest = Math.max(...chart.bars.map((bar) => bar.name.length));
    const width = Math.max(280, box.clientWidth);
    const left = Math.min(width * 0.42, 14 + longest * 7), right = 90, top = 6, bottom = 40, row = 26;
    const { svg, height } = frame(box, top + bottom + row * chart.bars.length);
    const high = Math.max(1e-9, ...chart.bars.map((bar) => Math.max(bar.value, bar.high ?? 0)));
    const x = (value) => left + (value / high) * (width - left - right);
    for (const value of ticks(0, high, Math.max(2, width / 160))) {
      node(svg, "line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: height - bottom });
      node(svg, "text", { x: x(value), y: height - bottom + 17, "text-anchor": "middle" }, shown(value));
    }
    chart.bars.forEach((bar, index) => {
      const middle = top + row * index + row / 2;
      const colour = bar.role === "plain" ? style("--s0") : colourOf(bar, index);
      node(svg, "rect", { x: left, y: middle - 8, width: Math.max(1, x(bar.value) - left), height: 16, rx: 2, fill: colour });
      if (bar.low !== null && bar.high !== null && bar.high > bar.low) {
        node(svg, "line", { x1: x(bar.low), x2: x(bar.high), y1: middle, y2: middle, stroke: style("--ink"), "stroke-width": 1.5 });
      }
      const name = node(svg, "text", { x: left - 6, y: middle + 4, "text-anchor": "end" }, bar.name);
      if (name.getComputedTextLength && name.getComputedTextLength() > left - 8) name.setAttribute("textLength", left - 8);
      node(svg, "text", { x: x(Math.max(bar.value, bar.high ?? 0)) + 6, y: middle + 4 }, shown(bar.value));
    });
    node(svg, "text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, chart.x);
  }

  const drawings = { lines, heat, bars };

  function draw() {
    for (const box of document.querySelectorAll("[data-chart]")) {
      const chart = charts[Number(box.dataset.chart)];
      box.replaceChildren();
      drawings[chart.kind](box, chart);
    }
  }

  let drawnAt = 0;
  new ResizeObserver(() => {
    if (document.body.clientWidth !== drawnAt) {
      drawnAt = document.body.clientWidth;
      draw();
    }
  }).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
