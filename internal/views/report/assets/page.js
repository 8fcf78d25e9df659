// The page itself: filters, the two views, the address, printing.

const byId = (id) => document.getElementById(id);
const printedRows = 1000;
const narrow = matchMedia('(max-width: 640px)');

const unset = { q: '', workspace: '', workload: '', region: '', host: '', label: '', wanted: '', running: '', state: '', verdict: [], rows: 'auto', cols: 'auto', view: '', open: '' };
let filter = { ...unset };
let result = { found: [], byVerdict: [] };
let cells = null;
let grid = null;

// read takes the filters from the address, and says whether it holds any.
function read() {
  const text = location.hash.slice(1);
  if (!text.includes('=')) {
    return false;
  }
  const given = new URLSearchParams(text);
  filter = { ...unset };
  for (const key of Object.keys(unset)) {
    const value = given.get(key);
    if (value !== null) {
      filter[key] = key === 'verdict' ? value.split(',').filter((name) => verdicts.includes(name)) : value;
    }
  }
  for (const [key, allowed] of [['rows', ['auto', 'host', 'region']], ['cols', ['auto', 'target', 'workload', 'workspace']]]) {
    if (!allowed.includes(filter[key])) {
      filter[key] = 'auto';
    }
  }
  return true;
}

let writing = 0;

// write puts the filters into the address, not at each key.
function write() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    const params = new URLSearchParams();
    for (const [key, value] of Object.entries(filter)) {
      if (String(value) !== String(unset[key])) {
        params.set(key, String(value));
      }
    }
    const text = params.toString();
    try {
      history.replaceState(null, '', text ? '#' + text : location.pathname + location.search);
    } catch {
      location.hash = text; // where the page may not change its address otherwise
    }
  }, 150);
}

function viewName() {
  return filter.view || (narrow.matches ? 'list' : 'matrix');
}

// change sets parts of the filter and shows what it finds.
function change(parts) {
  Object.assign(filter, parts);
  write();
  show();
}

function show() {
  result = find(filter);
  syncControls();
  const filtered = ['q', 'workspace', 'workload', 'region', 'host', 'label', 'wanted', 'running', 'state'].some((key) => filter[key]) || filter.verdict.length > 0;
  const on = new Set();
  for (const i of result.found) {
    on.add(assignments.host[i]);
  }
  byId('hits').textContent = result.found.length
    ? (filtered ? number(result.found.length) + ' of ' : '') + counted(assignments.size, 'assignment') + ' on ' + counted(on.size, 'host')
    : assignments.size ? 'Nothing fits these filters' : 'There are no assignments';
  byId('clear').hidden = !filtered;
  const list = viewName() === 'list';
  grid.scroller.classList.toggle('list', list);
  grid.show(list ? listModel() : matrixModel());
  const room = Math.max(240, Math.min(innerHeight - 160, 900));
  grid.scroller.style.maxHeight = room + 'px';
  if (filter.open) {
    openNamed(filter.open);
  } else {
    byId('detail').hidden = true;
  }
}

function shareBar(by, n) {
  const bar = element('span', { class: 'share', 'aria-hidden': 'true' });
  by.forEach((count, verdict) => {
    if (count) {
      const part = element('i', { class: verdicts[verdict] });
      part.style.width = 100 * count / n + '%';
      bar.append(part);
    }
  });
  return bar;
}

function inWords(by) {
  return by.map((n, verdict) => n ? number(n) + ' ' + (verdict === none ? 'not reported' : verdicts[verdict]) : '').filter(Boolean).join(', ');
}

function matrixModel() {
  cells = grouped(result.found, filter.rows, filter.cols);
  const byHost = cells.rows === 'host', byTarget = cells.cols === 'target';
  const rowName = (row) => byHost ? hostName(cells.rowMembers[row][0]) : regionName(cells.rowMembers[row][0]) || 'no region';
  const colName = (col) => byTarget ? targetName(cells.colMembers[col][0]) : texts[targets[cells.cols][cells.colMembers[col][0]] || 0] || 'no ' + cells.cols;
  const cellAt = (row, col) => cells.cells.get(row * cells.colMembers.length + col);
  const small = narrow.matches;
  return {
    label: 'Assignments: ' + (byHost ? 'hosts' : 'regions') + ' by ' + { target: 'deployment targets', workload: 'workloads', workspace: 'workspaces' }[cells.cols],
    rows: cells.rowMembers.length, cols: cells.colMembers.length,
    rowHeight: 36, headHeight: 60, headWidth: small ? 132 : 232, width: () => byTarget ? 124 : 96,
    corner: { class: 'corner', nodes: [element('span', {}, byHost ? 'Host' : 'Region'), element('span', { class: 'quiet' }, { target: 'Deployment target', workload: 'Workload', workspace: 'Workspace' }[cells.cols])] },
    colHead(col) {
      const t = cells.colMembers[col][0];
      if (!byTarget) {
        return { title: colName(col), class: 'more', nodes: [element('small', {}, counted(cells.colMembers[col].length, 'target')), element('bdi', {}, colName(col))] };
      }
      const name = colName(col), workload = texts[targets.workload[t] || 0];
      const own = workload && name.startsWith(workload + '-') ? name.slice(workload.length + 1) : '';
      return { title: name, label: name, nodes: [element('small', {}, element('bdi', {}, own ? workload : '')), element('bdi', {}, own || name)] };
    },
    rowHead(row) {
      const members = cells.rowMembers[row], h = members[0];
      if (!byHost) {
        return { class: 'more', title: rowName(row), nodes: [element('bdi', {}, rowName(row)), element('small', {}, counted(members.length, 'host'))] };
      }
      const score = hosts.score[h] ? hosts.score[h] - 1 : null;
      const grade = score === null ? '' : gradeOf(score);
      return {
        title: rowName(row), nodes: [element('bdi', {}, rowName(row)),
          hosts.clusters[h] > 1 ? element('small', { title: counted(hosts.clusters[h], 'cluster') }, '×' + number(hosts.clusters[h])) : '',
          score === null ? '' : element('small', { class: 'grade ' + grade, 'aria-label': 'health ' + score + ', ' + grade }, String(score))],
      };
    },
    holds: (row, col) => cellAt(row, col) !== undefined,
    cell(row, col) {
      const cell = cellAt(row, col);
      const where = colName(col) + ' on ' + rowName(row);
      if (!cell) {
        return { class: 'empty', label: where + ': nothing', nodes: [] };
      }
      if (byHost && byTarget) {
        const i = cell.first, state = assignments.state[i];
        const version = texts[targets.version[assignments.target[i]] || 0];
        return {
          class: 'one ' + verdicts[cell.worst],
          label: [where + ': ' + (cell.worst === none ? 'not reported' : verdicts[cell.worst]), version, runNames(i) && 'running ' + runNames(i), state > 1 ? states[state] : '', assignments.waits[i] ? 'waiting' : ''].filter(Boolean).join(', '),
          nodes: [icon(verdicts[cell.worst]), element('span', {}, version), state > 1 ? element('span', { class: 'mark' }, ['', '', '+', '~', '−'][state]) : ''],
        };
      }
      const worst = cell.by[cell.worst];
      return { // a colour behind it only where it is more than a few
        class: 'many ' + (worst * 20 >= cell.n ? verdicts[cell.worst] : ''), label: where + ': ' + counted(cell.n, 'assignment') + ', ' + inWords(cell.by),
        nodes: [icon(verdicts[cell.worst]), element('b', { class: 'num' }, number(worst)), element('small', { class: 'num' }, worst < cell.n ? '/ ' + number(cell.n) : ''), shareBar(cell.by, cell.n)],
      };
    },
    activate(row, col) {
      const cell = row >= 0 && col >= 0 ? cellAt(row, col) : null;
      if (byHost && row >= 0 && col < 0) {
        openHost(cells.rowMembers[row][0]);
        return;
      }
      if (byHost && byTarget) {
        if (cell) {
          open(cell.first);
        }
        return;
      }
      const parts = {};
      if (row >= 0 && !byHost) {
        parts.region = regionName(cells.rowMembers[row][0]) || '-';
        parts.rows = 'host';
      }
      if (col >= 0 && !byTarget) {
        parts[cells.cols] = colName(col);
        parts.cols = 'auto';
      }
      if ((row < 0 || col < 0 || cell) && Object.keys(parts).length) {
        change(parts);
        grid.move(0, 0, true);
      } else if (cell) { // a host, and deployment targets taken together
        change({ host: rowName(row), [cells.cols]: colName(col), cols: 'target' });
        grid.move(0, 0, true);
      }
    },
  };
}

function listModel() {
  const a = assignments;
  const rows = result.found.slice().sort((x, y) => a.verdict[x] - a.verdict[y] || x - y);
  const small = narrow.matches;
  const columns = [
    ['Verdict', 148, (i) => [verdictOf(a.verdict[i])]],
    ['Host', 200, (i) => [element('bdi', {}, hostName(a.host[i]))]],
    ['Wanted', 112, (i) => [element('bdi', {}, texts[targets.version[a.target[i]] || 0])]],
    ['Running', 148, (i) => [element('bdi', {}, runNames(i))]],
    ['Message', 400, (i) => [element('bdi', {}, texts[a.message[i]])]],
    ['Since', 184, (i) => [moment(a.since[i])]],
    ['State', 128, (i) => [states[a.state[i]]]],
    ['Waits for', 320, (i) => [element('bdi', {}, texts[a.waits[i]])]],
  ];
  return {
    label: 'Assignments, the worst first', rows: rows.length, cols: columns.length,
    rowHeight: 36, headHeight: 36, headWidth: small ? 156 : 232, width: (col) => columns[col][1],
    corner: { class: 'corner', nodes: ['Deployment target'] },
    colHead: (col) => ({ nodes: [columns[col][0]] }),
    rowHead: (row) => ({ title: targetName(a.target[rows[row]]), nodes: [element('bdi', {}, targetName(a.target[rows[row]]))] }),
    cell: (row, col) => ({ class: 'text', nodes: columns[col][2](rows[row]) }),
    holds: () => true,
    activate(row) {
      if (row >= 0) {
        open(rows[row]);
      }
    },
  };
}

function keyOf(i) {
  return hostName(assignments.host[i]) + '/' + targetName(assignments.target[i]);
}

function open(i) {
  filter.open = keyOf(i);
  write();
  fillDetail(i);
  byId('detail').focus({ preventScroll: innerWidth > 900 });
}

function openHost(h) {
  filter.open = '';
  write();
  const box = byId('detail');
  box.replaceChildren(...hostOf(h, closeDetail));
  box.setAttribute('aria-label', hostName(h));
  box.hidden = false;
  box.scrollTop = 0;
  box.focus({ preventScroll: innerWidth > 900 });
}

function openNamed(key) {
  for (let i = 0; i < assignments.size; i++) {
    if (keyOf(i) === key) {
      fillDetail(i);
      return;
    }
  }
  byId('detail').hidden = true;
}

function fillDetail(i) {
  const box = byId('detail');
  box.replaceChildren(...detailOf(i, closeDetail));
  box.setAttribute('aria-label', targetName(assignments.target[i]) + ' on ' + hostName(assignments.host[i]));
  box.hidden = false;
  box.scrollTop = 0;
}

function closeDetail() {
  byId('detail').hidden = true;
  filter.open = '';
  write();
  if (grid.model.rows) {
    grid.move(grid.at.row, grid.at.col, true);
  }
}

// options fills a select with texts of the page.
function options(select, first, list) {
  select.append(element('option', { value: '' }, first));
  for (const text of [...new Set(list)].filter(Boolean).sort(compare)) {
    select.append(element('option', { value: text }, text));
  }
}

function buildControls() {
  options(byId('workspace'), 'All', Array.from(targets.workspace, (text) => texts[text]));
  options(byId('workload'), 'All', Array.from(targets.workload, (text) => texts[text]));
  options(byId('region'), 'All', Array.from(hosts.region, (text) => texts[text]));
  for (const [value, name] of [['', 'Any'], ['pending', 'not as wanted'], ['new', 'new'], ['changed', 'changed'], ['being removed', 'being removed'], ['waiting', 'waiting']]) {
    byId('state').append(element('option', { value }, name));
  }
  for (const [value, name] of [['auto', 'Automatic'], ['region', 'Regions'], ['host', 'Hosts']]) {
    byId('rows').append(element('option', { value }, name));
  }
  for (const [value, name] of [['auto', 'Automatic'], ['workspace', 'Workspaces'], ['workload', 'Workloads'], ['target', 'Deployment targets']]) {
    byId('cols').append(element('option', { value }, name));
  }
  const labels = new Set();
  for (const column of [hosts.labels, targets.labels]) {
    for (const index of column) {
      set(index).forEach((text) => labels.add(text));
    }
  }
  for (const text of [...labels].sort(compare).slice(0, 500)) {
    byId('label-list').append(element('option', { value: text }));
  }
  for (const key of ['workspace', 'workload', 'region', 'state', 'rows', 'cols']) {
    byId(key).addEventListener('change', (event) => change({ [key]: event.target.value }));
  }
  for (const [id, list] of [['wanted-list', wantedVersions()], ['running-list', runningTexts()]]) {
    for (const text of [...new Set(list)].sort(compare).slice(0, 500)) {
      byId(id).append(element('option', { value: text }));
    }
  }
  for (const key of ['q', 'label', 'wanted', 'running']) {
    byId(key).addEventListener('input', (event) => change({ [key]: event.target.value }));
  }
  verdicts.forEach((name, verdict) => {
    const chip = element('button', { type: 'button', class: 'chip', 'aria-pressed': 'false' }, verdictOf(verdict), element('b', { class: 'num' }));
    chip.addEventListener('click', () => change({
      verdict: filter.verdict.includes(name) ? filter.verdict.filter((other) => other !== name) : [...filter.verdict, name],
    }));
    byId('chips').append(chip);
  });
  byId('as-matrix').addEventListener('click', () => change({ view: 'matrix' }));
  byId('as-list').addEventListener('click', () => change({ view: 'list' }));
  byId('clear').addEventListener('click', () => {
    change({ ...unset, view: filter.view, rows: filter.rows, cols: filter.cols });
    byId('q').focus();
  });
}

function syncControls() {
  for (const key of ['q', 'label', 'wanted', 'running', 'workspace', 'workload', 'state', 'rows', 'cols']) {
    if (byId(key).value !== filter[key]) {
      byId(key).value = filter[key];
    }
  }
  byId('region').value = filter.region;
  verdicts.forEach((name, verdict) => {
    const chip = byId('chips').children[verdict], n = result.byVerdict[verdict], pressed = filter.verdict.includes(name);
    chip.hidden = name === 'none' && !n && !pressed;
    chip.setAttribute('aria-pressed', String(pressed));
    chip.lastChild.textContent = number(n);
  });
  const list = viewName() === 'list';
  byId('as-list').setAttribute('aria-pressed', String(list));
  byId('as-matrix').setAttribute('aria-pressed', String(!list));
  byId('rows').disabled = byId('cols').disabled = list;
}

// lead turns names elsewhere on the page into buttons that filter the fleet.
function lead(selector, parts) {
  for (const place of document.querySelectorAll(selector)) {
    const button = element('button', { type: 'button', class: 'link' });
    button.append(...place.childNodes);
    place.append(button);
    button.addEventListener('click', () => {
      change({ ...unset, view: filter.view, ...parts(place.dataset) });
      byId('fleet').scrollIntoView();
      if (grid.model.rows) {
        grid.move(0, 0, true);
      }
    });
  }
}

// What is printed is what the filters find, as a table.
function print() {
  const a = assignments;
  const found = result.found.slice().sort((x, y) => a.verdict[x] - a.verdict[y] || x - y);
  const body = element('tbody');
  for (const i of found.slice(0, printedRows)) {
    body.append(element('tr', {}, element('td', {}, verdictOf(a.verdict[i])), element('th', { scope: 'row' }, targetName(a.target[i])),
      element('td', {}, hostName(a.host[i])), element('td', {}, texts[targets.version[a.target[i]] || 0]), element('td', {}, runNames(i)), element('td', {}, states[a.state[i]]),
      element('td', {}, [texts[a.message[i]], a.waits[i] && 'waits for ' + texts[a.waits[i]]].filter(Boolean).join('; '))));
  }
  const head = element('tr', {}, ...['Verdict', 'Deployment target', 'Host', 'Wanted', 'Running', 'State', 'Message'].map((name) => element('th', { scope: 'col' }, name)));
  byId('print').replaceChildren(element('p', {}, byId('hits').textContent + (found.length > printedRows ? ', the first ' + number(printedRows) + ' of them:' : ':')),
    element('table', {}, element('thead', {}, head), body));
}

// reachTables lets keys scroll the tables that are wider than the screen.
function reachTables() {
  for (const box of document.querySelectorAll('.table')) {
    const wide = box.scrollWidth > box.clientWidth;
    const title = box.closest('section').querySelector('h2').textContent;
    for (const [name, value] of [['tabindex', '0'], ['role', 'group'], ['aria-label', title + ', a table that scrolls']]) {
      if (wide) {
        box.setAttribute(name, value);
      } else {
        box.removeAttribute(name);
      }
    }
  }
}

function start() {
  buildControls();
  byId('explorer').hidden = false;
  grid = new Grid(byId('grid-box'));
  read();
  lead('[data-region]', (about) => ({ region: about.region || '-', rows: 'host' }));
  lead('[data-host]', (about) => ({ host: about.host, rows: 'host', cols: 'target' }));
  lead('#glance [data-verdict]', (about) => ({ verdict: [about.verdict] }));
  show();
  reachTables();
  addEventListener('resize', reachTables);
  addEventListener('hashchange', () => read() && show());
  narrow.addEventListener('change', show);
  addEventListener('beforeprint', print);
  addEventListener('afterprint', () => byId('print').replaceChildren());
  byId('fleet').addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !byId('detail').hidden) {
      event.preventDefault();
      closeDetail();
    }
  });
  // Links within the page leave the address to the filters.
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener('click', (event) => {
      const place = byId(link.getAttribute('href').slice(1));
      if (place) {
        event.preventDefault();
        place.tabIndex = -1;
        place.focus({ preventScroll: true });
        place.scrollIntoView();
      }
    });
  }
}

// The first search is as quick as the others.
addEventListener('load', () => setTimeout(() => holding(''), 500));

// What stands in the page is painted before the matrix is made.
requestAnimationFrame(() => setTimeout(start));
