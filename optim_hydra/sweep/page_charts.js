// The charts: results over seeds, learning curves, learning rates (plotly.js).
const PALETTE = ["#3b7dd8", "#e07b1a", "#239b6c", "#cf4a8d", "#8a68d6", "#b38a00", "#14a3bd", "#d9534f", "#748c2a", "#96705f"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
const color = g => PALETTE[g % PALETTE.length];
const dark = matchMedia("(prefers-color-scheme: dark)");
const NUM_SETTINGS = 30, NUM_MEANS = 20, NUM_BANDS = 6, LEGEND_HEIGHT = 240;

function layout(more) {
  const style = getComputedStyle(document.body), of = name => style.getPropertyValue(name).trim();
  const axis = {gridcolor: of("--line"), linecolor: of("--line"), zerolinecolor: of("--line"), automargin: true,
    title: {font: {size: 13, color: of("--soft")}, standoff: 8}, tickfont: {size: 12}, exponentformat: "e", minexponent: 4};
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: "closest",
    font: {family: style.fontFamily, size: 13, color: of("--text")}, margin: {l: 8, r: 12, t: 8, b: 8},
    dragmode: narrow.matches ? false : "zoom", // a finger on the chart scrolls the page
    hoverlabel: {bgcolor: of("--card"), bordercolor: of("--line"), font: {color: of("--text"), size: 13}, align: "left"},
    ...more, xaxis: {...axis, ...more.xaxis, title: {...axis.title, text: more.xaxis.title}},
    yaxis: {...axis, ...more.yaxis, title: {...axis.title, text: more.yaxis.title}},
  };
}

const show = (id, traces, more) => Plotly.react(id, traces, layout(more), {responsive: true, displaylogo: false,
  displayModeBar: narrow.matches ? false : "hover", modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]]});

// A constant has no extent of its own to make an axis of: it gets that between 0 and its double.
function around(values) {
  const found = values.filter(Number.isFinite), size = found.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  const low = found.reduce((a, b) => Math.min(a, b), Infinity), high = found.reduce((a, b) => Math.max(a, b), -Infinity);
  return size && high - low < 1e-9 * size ? [Math.min(0, 2 * low), Math.max(0, 2 * high)] : undefined;
}

// The mean where every curve has a value: a seed that ended early ends it.
function meanOf(curves) {
  const from = Math.max(...curves.map(({x}) => x[0])), to = Math.min(...curves.map(({x}) => x.at(-1)));
  const grid = [...new Set(curves.flatMap(({x}) => [...x]))].filter(s => s >= from && s <= to).sort((a, b) => a - b);
  const columns = curves.map(({x, y}) => {
    let k = 0;
    return grid.map(s => {
      while (x[k + 1] <= s) k++;
      return x[k] === s ? y[k] : y[k] + (y[k + 1] - y[k]) * (s - x[k]) / (x[k + 1] - x[k]);
    });
  });
  const mean = grid.map((_, k) => columns.reduce((sum, c) => sum + c[k], 0) / columns.length);
  const std = grid.map((_, k) => Math.sqrt(columns.reduce((sum, c) => sum + (c[k] - mean[k]) ** 2, 0) / (columns.length - 1)));
  return {grid, mean, std};
}

function charts(page, table) {
  const {data, setting, name} = page, hidden = new Set(), tag = i => page.seed(i) || data.jobs.job[i];
  const metrics = Object.keys(data.curves), rates = metrics.filter(m => m.startsWith("lr."));
  const index = new Map(metrics.map(m => [m, new Map(data.curves[m].map(([i, start, count]) => [i, [start, start + count]]))]));
  const curve = (metric, i) => {
    const place = index.get(metric)?.get(i);
    return place && {x: page.steps.subarray(...place), y: page.values.subarray(...place)};
  };
  const peaks = metric => new Set(data.curves[metric].map(([i]) => Math.max(...curve(metric, i).y)));
  const variety = new Map(rates.map(metric => [metric, peaks(metric)]));
  rates.sort((a, b) => variety.get(b).size - variety.get(a).size); // the rate that was swept comes first
  const selected = () => table.rows({selected: true}).data().toArray().map(row => row.i);
  const all = num => num.toLocaleString(undefined);
  const drawn = mean => {
    const rows = table.rows({search: "applied", order: "applied"}).data().toArray().map(row => row.i);
    if (!mean) {
      const ids = [...new Set([...selected(), ...rows.slice(0, data.full)])];
      return [ids, setting.length, "jobs", `the first ${data.full} of the leaderboard, as filtered and sorted`, ""];
    }
    // All jobs of a setting: a mean of the jobs that lead would be a mean of lucky seeds.
    const best = [...new Set(rows.map(i => setting[i]))].sort((a, b) => a - b).slice(0, NUM_MEANS);
    const groups = [...new Set([...selected().map(i => setting[i]), ...best])];
    return [groups.flatMap(g => data.settings[g].jobs), data.settings.length, "settings", `the best ${NUM_MEANS} in the leaderboard, as filtered`,
      ` Failed jobs are not in a mean; ${groups.length > NUM_BANDS ? `the spread is drawn for the first ${NUM_BANDS}, or for the selected` : "the band is one standard deviation each way"}.`];
  };
  const line = (metric, label, x, y, more = {}) => ({x, y, type: "scatter", mode: x.length > 1 ? "lines" : "markers",
    hovertemplate: `<b>${esc(label)}</b><br>step %{x:,}<br>${esc(metric)} %{y:.4~g}<extra></extra>`, ...more});

  function everyJob(metric, ids) {
    const front = new Set(selected());
    return ids.filter(i => curve(metric, i)).map(i => {
      const {x, y} = curve(metric, i), g = setting[i], bold = front.has(i);
      return line(metric, name(i), x, y, {opacity: bold ? 1 : front.size ? 0.3 : 0.75, line: {color: color(g),
        width: bold ? 3 : 1.5, dash: data.jobs.status[i] === "failed" ? "dot" : DASHES[Math.floor(g / PALETTE.length) % 4]}});
    });
  }

  function means(metric, ids) {
    const front = new Set(selected().map(i => setting[i]));
    return [...new Set(ids.map(i => setting[i]))].flatMap((g, place) => {
      const parts = ids.filter(i => setting[i] === g && data.jobs.status[i] !== "failed").map(i => curve(metric, i)).filter(Boolean);
      if (!parts.length) return [];
      const {grid, mean, std} = meanOf(parts), back = front.size && !front.has(g);
      const label = `${data.settings[g].label} · ${parts.length > 1 ? `mean of ${parts.length}` : "one job"}`;
      const ok = grid.flatMap((_, k) => Number.isFinite(std[k]) ? [k] : []), around = [...ok, ...ok.slice().reverse()];
      const band = {x: around.map(k => grid[k]), y: around.map((k, n) => mean[k] + (n < ok.length ? std[k] : -std[k])),
        type: "scatter", mode: "lines", fill: "toself", fillcolor: `${color(g)}2b`, line: {width: 0}, hoverinfo: "skip"};
      const banded = ok.length && (front.size ? !back : place < NUM_BANDS);
      return [...(banded ? [band] : []), line(metric, label, grid, mean, {opacity: back ? 0.3 : 1,
        line: {color: color(g), width: 2.25, dash: DASHES[Math.floor(g / PALETTE.length) % 4]}})];
    });
  }

  function legend(ids) {
    const toggle = (jobs, props, ...children) => h("button", {type: "button", ...props, onclick: () => {
      const on = jobs.some(i => hidden.has(i));
      jobs.forEach(i => on ? hidden.delete(i) : hidden.add(i));
      render();
    }, ariaPressed: String(jobs.some(i => !hidden.has(i)))}, ...children);
    const groups = Map.groupBy(ids, i => setting[i]), box = $("legend");
    box.replaceChildren(...[...groups].map(([g, jobs]) => {
      const mark = h("i", {className: "swatch"});
      mark.style.background = color(g);
      return h("div", {className: "entry"}, toggle(jobs, {className: "group"}, mark, data.settings[g].label),
        ...(jobs.length > 1 ? jobs.toSorted((a, b) => compare(tag(a), tag(b))).map(i =>
          toggle([i], {className: `job ${data.jobs.status[i]}`, title: name(i)}, tag(i))) : []));
    }));
    const ends = [...box.children].map(entry => entry.offsetTop + entry.offsetHeight);
    const end = Math.max(...ends.filter((end, k) => !k || end <= LEGEND_HEIGHT)); // no line is cut
    box.style.maxHeight = `${end + (end < ends.at(-1) ? parseFloat(getComputedStyle(box).rowGap) : 0)}px`;
  }

  function spread() {
    const shown = data.settings.filter(s => s.mean !== null).slice(0, NUM_SETTINGS), wide = !narrow.matches;
    const short = text => text.length > 44 ? `${text.slice(0, 43)}…` : text;
    $("spread").hidden = !shown.length;
    $("spread-note").textContent = shown.length < data.settings.length ? `The chart has ${shown.length} of ${data.settings.length} settings: the first of those with a result.` : "";
    if (!shown.length) return;
    const y = shown.map((_, g) => -g);
    const dots = shown.flatMap((s, g) => s.jobs.filter(i => data.ranks[i]).map(i => ({i, g})));
    show("spread", [
      {type: "scatter", mode: "markers", x: dots.map(({i}) => data.jobs.result[i]), y: dots.map(({g}) => -g),
        marker: {color: dots.map(({g}) => color(g)), size: 8, opacity: 0.45}, text: dots.map(({i}) => esc(name(i))),
        hovertemplate: "<b>%{text}</b><br>%{x:.4~g}<extra></extra>"},
      ...shown.map((s, g) => ({type: "scatter", mode: "markers", x: [s.mean], y: [-g],
        error_x: {array: [s.std ?? 0], visible: s.std !== null, color: color(g), thickness: 2, width: 6},
        marker: {symbol: "line-ns", size: wide ? 18 : 14, color: color(g), line: {width: 3, color: color(g)}},
        hovertemplate: `<b>${esc(s.label)}</b><br>mean ${fmt(s.mean)}${s.std === null ? "" : ` ± ${fmt(s.std)}`}<br>results ${s.n}<extra></extra>`})),
    ], {height: 70 + shown.length * (wide ? 34 : 50),
      xaxis: {title: `result (${data.direction === "minimize" ? "lower" : "higher"} is better)`, zeroline: false,
        range: around([...dots.map(({i}) => data.jobs.result[i]), ...shown.flatMap(s => [s.mean - s.std, s.mean + s.std])])},
      yaxis: {title: "", range: [0.6 - shown.length, wide ? 0.6 : 0.8], showgrid: false, zeroline: false, fixedrange: true,
        tickvals: y, ticktext: shown.map(s => esc(short(s.label))), showticklabels: wide},
      annotations: wide ? [] : shown.map((s, g) => ({text: esc(short(s.label)), x: 0, xref: "paper", xanchor: "left",
        y: -g, yshift: 17, showarrow: false, font: {size: 12}}))});
  }

  function render() {
    const mean = $("form").value === "mean", traces = mean ? means : everyJob, [ids, total, noun, from, more] = drawn(mean);
    const open = ids.filter(i => !hidden.has(i)), metric = $("metric").value;
    const height = narrow.matches ? 320 : 430;
    const draw = (id, metric, log) => {
      if (!metric) return 0;
      const found = traces(metric, open);
      if (log) for (const trace of found) trace.y = Array.from(trace.y, y => y > 0 ? y : null);
      show(id, found, {height, xaxis: {title: "step", tickformat: "~s"}, yaxis: {title: esc(metric), type: log ? "log" : "linear",
        range: log ? undefined : around(found.flatMap(({y}) => [...y]))}});
      return found.filter(({y, hovertemplate}) => hovertemplate && y.some(Number.isFinite)).length;
    };
    const num = draw("curves", metric, $("log").checked);
    draw("rate-curves", $("rate").value, $("rate-log").checked);
    legend(ids.filter(i => metrics.some(metric => curve(metric, i))));
    $("drawn").textContent = `${all(num)} of ${all(total)} ${noun} ${num === 1 ? "is" : "are"} drawn: of ${from}, and of those selected in it, what has values of ${metric} and is not struck out below.${more}`;
  }

  const fill = (id, names, section) => {
    $(id).append(...names.map(value => h("option", {value}, value)));
    $(section).classList.toggle("empty", !names.length);
  };
  fill("metric", metrics.filter(m => !rates.includes(m)), "learning");
  fill("rate", rates, "rates");
  const [low, high] = [Math.min, Math.max].map(of => of(...variety.get(rates[0]) ?? [1]));
  $("rate-log").checked = low > 0 && high > 30 * low;
  $("form").value = data.settings.some(s => s.n > 1) ? "mean" : "jobs";
  let waiting = 0;
  const later = () => { waiting ||= requestAnimationFrame(() => { waiting = 0; render(); }); };
  for (const id of ["metric", "form", "log", "rate", "rate-log"]) $(id).addEventListener("change", later);
  table.on("draw select deselect", later);
  const restyle = () => { document.documentElement.classList.toggle("dark", dark.matches); spread(); later(); };
  dark.addEventListener("change", restyle);
  narrow.addEventListener("change", restyle);
  addEventListener("resize", later);
  restyle();
}
