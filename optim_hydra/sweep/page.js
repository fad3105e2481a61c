// Unpack the libraries and the data, then show the tables (DataTables).
const $ = id => document.getElementById(id);
const h = (tag, props, ...children) => {
  const element = Object.assign(document.createElement(tag), props);
  element.append(...children);
  return element;
};
// Text for HTML, for plotly, which reads tags and %{...} in labels, and for the filter
// of DataTables, which has a browser decode what it searches.
const esc = text => String(text).replace(/[&<>"'%]/g, c => `&#${c.charCodeAt(0)};`);
const fmt = x => {
  if (typeof x !== "number" || Number.isInteger(x)) return String(x);
  const size = Math.abs(x), short = +x.toPrecision(4);
  return size >= 1e-4 && size < 1e6 ? String(short) : short.toExponential().replace("e+", "e");
};
const duration = s => s < 60 ? `${fmt(s)} s` : s < 3600 ? `${s / 60 | 0} min ${s % 60 | 0} s`
  : `${s / 3600 | 0} h ${s % 3600 / 60 | 0} min`;
const unpack = async id => {
  const text = atob($(id).textContent), raw = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) raw[i] = text.charCodeAt(i);
  return new Response(new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
};
const unpackText = async id => new TextDecoder().decode(await unpack(id));
const {nonce} = document.currentScript; // only scripts that have it run in this page
const narrow = matchMedia("(max-width: 640px)");

// Columns: what has no value comes last, whichever way it is sorted.
const {compare} = new Intl.Collator(undefined, {numeric: true});
const order = sign => (a, b) => a === null || b === null ? (a === null) - (b === null)
  : sign * (typeof a === "number" && typeof b === "number" ? a - b : compare(String(a), String(b)));
const column = (title, get, {show = fmt, before = () => "", ...more} = {}) => ({
  title: esc(title), type: "value", data: null, ...more,
  render: (_, type, row) => {
    const value = get(row) === "" ? null : get(row) ?? null, text = value === null ? "" : show(value);
    return type === "display" ? before(row) + esc(text) : type === "filter" ? esc(text) : value;
  },
});
const options = (filter, count, length) => ({ // one page needs no search and no paging
  autoWidth: false, deferRender: true, pageLength: length,
  language: {search: "", searchPlaceholder: filter, info: "_START_ to _END_ of _TOTAL_",
    infoEmpty: "none", infoFiltered: "(of _MAX_)", emptyTable: "none", zeroRecords: "none fits the filter"},
  layout: {topStart: count > length ? "search" : null, topEnd: null, bottomStart: count > length ? "info" : null,
    bottomEnd: count > length ? {paging: {buttons: 5, firstLast: false}} : null},
});

function jobsTable(DataTable, {data, color, setting}) {
  const J = data.jobs, number = {className: "number"}, wide = name => ({className: "wide", visible: new Set(J[name]).size > 1});
  const swatch = g => `<i class="swatch" style="background:${color(g)}"></i>`;
  const job = (name, title = name, more = {}) => column(title, row => J[name][row.i], more);
  const common = options("Filter jobs", J.job.length, narrow.matches ? 8 : 15);
  const last = Object.keys(J).filter(name => name.startsWith("last."));
  const table = new DataTable("#jobs", {
    ...common, order: [[1, "asc"]],
    data: J.job.map((_, i) => ({i})), select: {style: "multi", selector: "td:not(.more)", info: false},
    columns: [
      {data: null, defaultContent: '<button type="button" aria-label="Details"></button>',
        className: "more", orderable: false, title: ""},
      column("#", row => data.ranks[row.i], {className: "rank", before: row => swatch(setting[row.i])}),
      job("result", "result", number), job("status", "status", {name: "status", className: "state"}),
      ...data.swept.map(key => job(key, key, {className: "setting"})), job("job"),
      ...last.map(name => job(name, `last ${name.slice(5)}`, {...number, visible: !name.startsWith("last.lr.")})),
      job("seconds", "time", {...number, show: duration}), ...data.nodes.map(node => job(node, node, wide(node))),
      ...(J.same_as.some(Boolean) ? [job("same_as", "equal to")] : []),
    ],
    createdRow: (element, row) => element.classList.add(J.status[row.i]),
    layout: {...common.layout, topStart: "search", topEnd: {buttons: [{extend: "colvis", text: "Columns", columns: ":not(.more)", background: false}]}},
  });
  table.on("click", "td.more", event => {
    const row = table.row(event.target.closest("tr")), open = row.child.isShown();
    open ? row.child.hide() : row.child(details(data, row.data().i), "details").show();
    event.target.closest("tr").classList.toggle("open", !open);
  });
  document.querySelectorAll("[data-status]").forEach(button => button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    document.querySelectorAll("[data-status]").forEach(other => other.setAttribute("aria-pressed", on && other === button));
    table.column("status:name").search(on ? `^${button.dataset.status}$` : "", true, false).draw();
  }));
  new DataTable("#groups", {
    ...options("Filter settings", data.settings.length, 10), order: [[0, "asc"]],
    data: data.settings.map((s, g) => ({...s, g})),
    columns: [
      column("#", s => s.mean === null ? null : s.g + 1, {className: "rank", before: s => swatch(s.g)}),
      ...data.keys.map((key, k) => column(key, s => s.values[k], {className: "setting"})),
      column("mean", s => s.mean, number), column("± std", s => s.std, number),
      column("results", s => s.n, number), column("failed", s => s.failed || null, {className: "number bad"}),
    ],
  });
  return table;
}

const command = text => h("div", {className: "command"}, h("code", {}, text),
  h("button", {type: "button", className: "copy"}, "Copy"));

function details({jobs, nodes}, i) {
  const terms = [["folder", jobs.folder[i]], ...nodes.map(node => [node, jobs[node][i]]),
    ["equal to", jobs.same_as[i]], ["error", jobs.error[i]]].filter(([, value]) => value);
  return h("div", {}, command(jobs.command[i]), h("dl", {},
    ...terms.flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)])));
}

function failuresTable(DataTable, {data, name}) {
  const line = i => h("div", {className: "repeat"}, h("span", {}, name(i)), command(data.jobs.command[i]));
  const fold = (title, ...children) => children.length ? [h("details", {}, h("summary", {}, title), ...children)] : [];
  const card = ({title, error, jobs}) => h("article", {}, h("h3", {}, title),
    ...fold("Whole message", ...(error === title ? [] : [h("pre", {}, error)])),
    ...jobs.slice(0, 3).map(line), ...fold(`${jobs.length - 3} more jobs with this message`, ...jobs.slice(3).map(line)));
  $("failures").classList.toggle("empty", !data.failures.length);
  new DataTable("#failed", {
    ...options("Filter failures", data.failures.length, 8), ordering: false, data: data.failures, columns: [{title: "", data: null,
      render: (_, type, row) => type === "display" ? card(row) : esc(`${row.error} ${row.jobs.map(name).join(" ")}`)}],
  });
}

document.addEventListener("click", async ({target}) => {
  if (!target.matches(".copy")) return;
  const code = target.previousElementSibling;
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch { // a page from a folder may lack the permission
    getSelection().selectAllChildren(code);
    document.execCommand("copy");
  }
  target.textContent = "Copied";
  setTimeout(() => { target.textContent = "Copy"; }, 1500);
});

async function main() {
  document.head.append(h("script", {nonce, textContent: await unpackText("plotly")}));
  $("style").before(h("style", {textContent: await unpackText("tables-style")}));
  const bundle = new Blob([await unpackText("tables")], {type: "text/javascript"});
  const {default: DataTable} = await import(URL.createObjectURL(bundle));
  DataTable.type("value", {order: {asc: order(1), desc: order(-1)}});
  const data = JSON.parse(await unpackText("data")), setting = [];
  data.settings.forEach((s, g) => s.jobs.forEach(i => { setting[i] = g; }));
  const seeds = data.swept.filter(key => !data.keys.includes(key));
  const seed = i => seeds.map(key => data.jobs[key][i] ?? "").filter(value => value !== "").map(fmt).join("/");
  const name = i => [`job ${data.jobs.job[i]}`, data.settings[setting[i]].label, seed(i) && `seed ${seed(i)}`].filter(Boolean).join(" · ");
  const page = {data, setting, seeds, seed, name, color,
    steps: new Float64Array(await unpack("steps")), values: new Float32Array(await unpack("values"))};
  failuresTable(DataTable, page);
  const table = jobsTable(DataTable, page);
  charts(page, table);
  document.body.dataset.ready = "yes";
}

main().catch(error => {
  $("trouble").textContent = `This browser can't show the tables and charts: ${error}`;
  $("trouble").hidden = false;
}).finally(() => document.body.classList.remove("loading"));
