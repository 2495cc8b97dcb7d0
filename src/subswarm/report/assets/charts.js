// Charts of the page: layers of lines, bands, dots and marks on two axes, with an optional heat map below.
// They respond to mouse, touch and keyboard: left and right move along a layer, up and down change the layer.
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const DASHES = ["", "7 4", "2 3", "9 3 2 3", "4 2", "1 3", "12 4", "6 2 2 2"];
  const BANDS = 3; // the most lines that show their bands at the same time; with more lines, only the active one does
  const MARGIN = { top: 12, right: 22, bottom: 42, left: 64 };

  const node = (name, attributes = {}, ...children) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const short = (value) => {
    if (!Number.isFinite(value)) return "–";
    if (Number.isInteger(value)) return String(value);
    return String(Number(value.toPrecision(4)));
  };
  const ticks = (low, high, wanted) => {
    const rough = (high - low) / Math.max(wanted, 1) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
    return found;
  };
  const extent = (values) => values.reduce(([low, high], v) => (v === null ? [low, high] : [Math.min(low, v), Math.max(high, v)]), [Infinity, -Infinity]);

  class Chart {
    constructor(holder) {
      this.holder = holder;
      this.data = JSON.parse(holder.querySelector("script").textContent);
      this.layers = this.data.layers;
      const lines = this.layers.filter((layer) => layer.kind === "line").sort((one, other) => one.colour - other.colour);
      lines.forEach((layer, place) => { layer.dash = DASHES[place % 8]; });
      this.layers.forEach((layer) => { layer.colour = `var(--c${layer.colour % 8})`; layer.shown = true; });
      this.legend = document.createElement("div");
      this.legend.className = "legend";
      this.readout = document.createElement("p");
      this.readout.className = "readout soft";
      this.readout.setAttribute("aria-live", "polite");
      this.hint = "Point at the chart, or focus it and use the arrow keys.";
      this.readout.textContent = this.hint;
      this.place = { layer: this.layers.findIndex((layer) => layer.kind === "line"), point: -1 };
      if (this.place.layer < 0) this.place.layer = 0;
      this.addLegend();
      holder.append(this.legend, this.readout);
      this.width = 0; // a hidden chart has no width: it is drawn when it is shown
      const fit = () => { if (holder.clientWidth && Math.abs(holder.clientWidth - this.width) > 4) this.draw(); };
      fit();
      new ResizeObserver(fit).observe(holder);
    }

    addLegend() {
      if (this.layers.length < 2) return;
      for (const layer of this.layers) {
        const button = document.createElement("button");
        button.type = "button";
        button.setAttribute("aria-pressed", "true");
        const sign = node("svg", { viewBox: "0 0 26 11", "aria-hidden": "true" });
        if (layer.kind === "line") sign.append(node("line", { x1: 0, x2: 26, y1: 6, y2: 6, stroke: layer.colour, "stroke-width": 2.5, "stroke-dasharray": layer.dash }));
        else if (layer.kind === "mark") sign.append(this.star(13, 6, 6, layer.colour));
        else sign.append(node("circle", { cx: 13, cy: 6, r: 3.5, fill: layer.colour }));
        button.append(sign, layer.name);
        button.addEventListener("click", () => {
          layer.shown = !layer.shown;
          button.setAttribute("aria-pressed", String(layer.shown));
          this.draw();
        });
        this.legend.append(button);
      }
    }

    star(x, y, r, colour) {
      const points = [...Array(10).keys()].map((k) => {
        const angle = (Math.PI * k) / 5 - Math.PI / 2, length = k % 2 ? r * 0.45 : r * 1.25;
        return `${(x + length * Math.cos(angle)).toFixed(1)},${(y + length * Math.sin(angle)).toFixed(1)}`;
      });
      return node("polygon", { points: points.join(" "), fill: colour, stroke: "var(--paper)", "stroke-width": 1 });
    }

    scales() {
      const shown = this.layers.filter((layer) => layer.shown);
      const used = shown.length ? shown : this.layers;
      let [x0, x1] = extent(used.flatMap((layer) => layer.x));
      this.bands = used.filter((layer) => layer.low).length <= BANDS;
      const reach = (layer) => (this.bands && layer.low ? [...layer.y, ...layer.low, ...layer.high] : layer.y);
      let [y0, y1] = extent(used.flatMap(reach));
      if (this.data.heat) [x0, x1, y0, y1] = this.data.heat.box;
      else {
        const pad = (y1 - y0 || Math.abs(y1) || 1) * 0.06;
        [y0, y1] = [y0 - pad, y1 + pad];
        if (x0 === x1) [x0, x1] = [x0 - 1, x1 + 1];
        const aside = (x1 - x0) * 0.02;
        if (used.some((layer) => layer.kind === "dots")) [x0, x1] = [x0 - aside, x1 + aside];
      }
      this.box = [x0, x1, y0, y1];
      const w = this.width - MARGIN.left - MARGIN.right, h = this.height - MARGIN.top - MARGIN.bottom;
      this.X = (v) => MARGIN.left + ((v - x0) / (x1 - x0)) * w;
      this.Y = (v) => MARGIN.top + ((y1 - v) / (y1 - y0)) * h;
    }

    draw() {
      this.width = Math.max(this.holder.clientWidth, 260);
      this.height = Math.round(Math.min(360, Math.max(230, this.width * 0.45)));
      this.scales();
      const focused = document.activeElement === this.svg;
      this.svg?.remove();
      this.svg = node("svg", { viewBox: `0 0 ${this.width} ${this.height}`, height: this.height, role: "img", tabindex: 0, "aria-label": this.data.label });
      this.axes();
      if (this.data.heat) this.heat();
      const lines = this.layers.every((layer) => layer.kind === "line"); // the first line is drawn on top
      for (const layer of lines ? [...this.layers].reverse() : this.layers) if (layer.shown) this.layer(layer);
      this.cursor = node("g", { "pointer-events": "none" });
      this.svg.append(this.cursor);
      this.holder.prepend(this.svg);
      this.svg.addEventListener("pointermove", (event) => this.near(event));
      this.svg.addEventListener("pointerdown", (event) => this.near(event));
      this.svg.addEventListener("pointerleave", () => this.point(-1));
      this.svg.addEventListener("keydown", (event) => this.key(event));
      if (focused) this.svg.focus();
    }

    axes() {
      const [x0, x1, y0, y1] = this.box, right = this.width - MARGIN.right, bottom = this.height - MARGIN.bottom;
      for (const at of ticks(x0, x1, this.width / 90)) {
        if (!this.data.heat) this.svg.append(node("line", { class: "grid", x1: this.X(at), x2: this.X(at), y1: MARGIN.top, y2: bottom }));
        this.svg.append(node("text", { x: this.X(at), y: bottom + 16, "text-anchor": "middle" }, short(at)));
      }
      for (const at of ticks(y0, y1, this.height / 60)) {
        if (!this.data.heat) this.svg.append(node("line", { class: "grid", x1: MARGIN.left, x2: right, y1: this.Y(at), y2: this.Y(at) }));
        this.svg.append(node("text", { x: MARGIN.left - 7, y: this.Y(at) + 4, "text-anchor": "end" }, short(at)));
      }
      this.svg.append(
        node("line", { class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }),
        node("line", { class: "axis", x1: MARGIN.left, x2: MARGIN.left, y1: MARGIN.top, y2: bottom }),
        node("text", { x: (MARGIN.left + right) / 2, y: this.height - 6, "text-anchor": "middle" }, this.data.xlabel),
        node("text", { transform: `translate(11 ${(MARGIN.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, this.data.ylabel),
      );
    }

    heat() {
      const { box, rows, top } = this.data.heat, canvas = document.createElement("canvas");
      canvas.width = rows[0].length;
      canvas.height = rows.length;
      const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
      const stops = [[0, 32, 76], [67, 78, 108], [124, 123, 120], [190, 175, 110], [255, 234, 70]];
      rows.forEach((row, up) => row.forEach((value, along) => {
        const at = Math.min(value / top, 1) * 4, low = Math.min(Math.floor(at), 3), part = at - low;
        const pixel = 4 * ((canvas.height - 1 - up) * canvas.width + along);
        for (let k = 0; k < 3; k++) image.data[pixel + k] = stops[low][k] * (1 - part) + stops[low + 1][k] * part;
        image.data[pixel + 3] = 255;
      }));
      context.putImageData(image, 0, 0);
      this.svg.append(node("image", { href: canvas.toDataURL(), x: this.X(box[0]), y: this.Y(box[3]), width: this.X(box[1]) - this.X(box[0]), height: this.Y(box[2]) - this.Y(box[3]), preserveAspectRatio: "none", style: "image-rendering: pixelated" }));
    }

    layer(layer) {
      const at = layer.x.map((x, k) => [this.X(x), this.Y(layer.y[k])].map((v) => v.toFixed(1)));
      if (layer.kind === "dots") {
        this.svg.append(node("path", { d: at.map(([x, y]) => `M${x} ${y}h0`).join(""), stroke: layer.colour, "stroke-width": 4, "stroke-linecap": "round", "stroke-opacity": 0.4, fill: "none" }));
      } else if (layer.kind === "mark") {
        at.forEach(([x, y]) => this.svg.append(this.star(Number(x), Number(y), 8, layer.colour)));
      } else {
        if (layer.low && this.bands) this.svg.append(this.band(layer));
        const line = { points: at.map((pair) => pair.join(",")).join(" "), fill: "none", "stroke-linejoin": "round" };
        if (this.data.heat) this.svg.append(node("polyline", { ...line, stroke: "#fff", "stroke-width": 4 }));
        this.svg.append(node("polyline", { ...line, stroke: this.data.heat ? "#c24e00" : layer.colour, "stroke-width": 2, "stroke-dasharray": this.data.heat ? "" : layer.dash }));
      }
    }

    band(layer) {
      const inside = (y) => Math.min(Math.max(y, MARGIN.top), this.height - MARGIN.bottom);
      const edge = (values) => layer.x.map((x, k) => `${this.X(x).toFixed(1)},${inside(this.Y(values[k])).toFixed(1)}`);
      return node("polygon", { points: [...edge(layer.high), ...edge(layer.low).reverse()].join(" "), fill: layer.colour, "fill-opacity": this.bands ? 0.15 : 0.25 });
    }

    near(event) {
      const box = this.svg.getBoundingClientRect(), scale = this.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      let best = Infinity;
      this.layers.forEach((layer, which) => {
        if (!layer.shown) return;
        layer.x.forEach((each, k) => {
          const away = (this.X(each) - x) ** 2 + (this.Y(layer.y[k]) - y) ** 2;
          if (away < best) { best = away; this.place = { layer: which, point: k }; }
        });
      });
      this.point(this.place.point);
    }

    key(event) {
      const along = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      const last = () => this.layers[this.place.layer].x.length - 1;
      if (along !== undefined) this.place.point = Math.min(Math.max(this.place.point + along, 0), last());
      else if (event.key === "Home") this.place.point = 0;
      else if (event.key === "End") this.place.point = last();
      else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        const step = event.key === "ArrowDown" ? 1 : this.layers.length - 1;
        do this.place.layer = (this.place.layer + step) % this.layers.length; while (!this.layers[this.place.layer].shown && this.layers.some((layer) => layer.shown));
        this.place.point = Math.min(Math.max(this.place.point, 0), last());
      } else if (event.key === "Escape") this.place.point = -1;
      else return;
      event.preventDefault();
      this.point(this.place.point);
    }

    point(k) {
      this.cursor.replaceChildren();
      const layer = this.layers[this.place.layer];
      if (k < 0 || !layer?.shown) { this.readout.textContent = this.hint; return; }
      if (layer.low && !this.bands) this.cursor.append(this.band(layer));
      this.cursor.append(node("circle", { cx: this.X(layer.x[k]), cy: this.Y(layer.y[k]), r: 6, fill: "none", stroke: "var(--ink)", "stroke-width": 2 }));
      const band = layer.low ? ` (${short(layer.low[k])} to ${short(layer.high[k])})` : "";
      const note = layer.notes?.[k] ? `, ${layer.notes[k]}` : "";
      this.readout.textContent = `${layer.name}: ${this.data.xlabel} ${short(layer.x[k])}, ${this.data.ylabel} ${short(layer.y[k])}${band}${note}`;
    }
  }

  document.querySelectorAll(".chart").forEach((holder) => new Chart(holder));
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
})();
