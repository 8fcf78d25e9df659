'use strict';
// What the page knows, and which assignments a filter finds. Nothing here touches
// what is shown.

const verdicts = ['failed', 'behind', 'progressing', 'unknown', 'ready', 'none'];
const states = ['', 'up to date', 'new', 'changed', 'being removed'];
const none = 5; // the verdict of what nobody reports

const data = JSON.parse(document.getElementById('data').textContent);
const texts = data.strings;

// column returns the numbers of an attribute, zeros where the page has none.
function column(objects, attribute, length) {
  return objects[attribute] || new Uint8Array(length);
}

function table(objects, key, attributes) {
  const size = (objects[key] || []).length;
  const made = { size };
  for (const attribute of attributes) {
    made[attribute] = column(objects, attribute, size);
  }
  return made;
}

const hosts = table(data.hosts, 'name', ['name', 'cluster', 'region', 'clusters', 'labels', 'score', 'parts']);
const targets = table(data.targets, 'name', ['name', 'workload', 'workspace', 'version', 'labels']);
const clusters = table(data.clusters, 'name', ['name', 'type', 'verdict', 'since', 'message', 'commit', 'behind']);
const assignments = (() => {
  const all = data.assignments;
  const size = Math.max(0, ...Object.values(all).map((numbers) => numbers.length));
  const made = { size };
  for (const attribute of ['host', 'target', 'namespace', 'policies', 'verdict', 'since', 'message', 'counts', 'state',
    'tree', 'deployed', 'commit', 'changed', 'waits', 'snapshot', 'version', 'source', 'running']) {
    made[attribute] = column(all, attribute, size);
  }
  return made;
})();

const hostName = (h) => texts[hosts.name[h] || 0];
const targetName = (t) => texts[targets.name[t] || 0];
const regionName = (h) => texts[hosts.region[h] || 0];
const set = (index) => data.sets[index || 0].map((text) => texts[text]);
const number = (n) => n.toString().replace(/\B(?=(\d{3})+$)/g, ',');

function counted(n, noun) {
  return number(n) + ' ' + (n === 1 ? noun : noun + 's');
}

// moment writes a time of the data; "" where there is none.
function moment(at) {
  if (!at) {
    return '';
  }
  return new Date((data.epoch + at) * 1000).toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
}

// span says how long before the evidence a time was.
function span(at) {
  if (!at || !data.time || at > data.time) {
    return '';
  }
  const seconds = data.time - at;
  if (seconds < 60) {
    return seconds + ' s';
  }
  if (seconds < 3600) {
    return Math.floor(seconds / 60) + ' min';
  }
  if (seconds < 48 * 3600) {
    return Math.floor(seconds / 3600) + ' h';
  }
  return number(Math.floor(seconds / 86400)) + ' days';
}

// runsOf lists what clusters run of an assignment: what it is, and on how many clusters. Of the last it may not be known.
function runsOf(list) {
  const numbers = data.running[list || 0], found = [];
  for (let at = 0; at < numbers.length; at += 2) {
    if (at + 1 === numbers.length) {
      found.push({ clusters: numbers[at] });
      continue;
    }
    const [version, revision, chart, app, images] = data.runs[numbers[at]].map((text) => texts[text]);
    found.push({ version, revision, chart, app, images, clusters: numbers[at + 1] });
  }
  return found;
}

// runName is what runs, in short: its version, and the revision where a version alone does not say it.
function runName(run) {
  const revision = run.revision && run.revision.replace(/^(sha256:)?(.{7}).*$/, '$1$2');
  return run.chart || !revision ? run.version || '' : run.version ? run.version + ' (' + revision + ')' : revision;
}

// runNames names all that runs of an assignment.
function runNames(i) {
  return runsOf(assignments.running[i]).map((run) => run.version === undefined ? 'others' : runName(run)).join(', ');
}

// choosing returns a test for texts: the one that is chosen, or those that hold what is typed.
function choosing(typed, all) {
  const wanted = typed.trim().toLowerCase();
  const exact = all.some((text) => text.toLowerCase() === wanted);
  return (text) => exact ? text.toLowerCase() === wanted : text.toLowerCase().includes(wanted);
}

const wantedVersions = () => Array.from(targets.version, (text) => texts[text]).filter(Boolean);
const runningTexts = () => (data.runs || []).flatMap((run) => run.slice(0, 4).map((text) => texts[text]).concat(texts[run[4]].split(' '))).filter(Boolean);

let lower = null; // the texts in small letters, once somebody searches

// holding marks the texts that hold a word.
function holding(word) {
  lower = lower || texts.map((text) => text.toLowerCase());
  const found = new Uint8Array(texts.length);
  for (let i = 0; i < lower.length; i++) {
    found[i] = lower[i].includes(word) ? 1 : 0;
  }
  return found;
}

// setsHolding marks the sets of which one text fits.
function setsHolding(fits) {
  return data.sets.map((members) => members.some((text) => fits(texts[text])) ? 1 : 0);
}

// passing returns a test for assignments by host, target and their own columns.
// Each part of a filter is worked out once for each host, target or text.
function passing(filter) {
  const hostFits = new Uint8Array(hosts.size).fill(1);
  const targetFits = new Uint8Array(targets.size).fill(1);
  const exactly = (fits, column, text) => {
    for (let i = 0; i < fits.length; i++) {
      fits[i] &= texts[column[i] || 0] === text ? 1 : 0;
    }
  };
  if (filter.region) {
    exactly(hostFits, hosts.region, filter.region === '-' ? '' : filter.region);
  }
  if (filter.host) {
    exactly(hostFits, hosts.name, filter.host);
  }
  if (filter.workspace) {
    exactly(targetFits, targets.workspace, filter.workspace);
  }
  if (filter.workload) {
    exactly(targetFits, targets.workload, filter.workload);
  }
  if (filter.wanted) {
    const fits = choosing(filter.wanted, wantedVersions());
    for (let t = 0; t < targets.size; t++) {
      targetFits[t] &= texts[targets.version[t]] && fits(texts[targets.version[t]]) ? 1 : 0;
    }
  }
  let running = null;
  if (filter.running) {
    const fits = choosing(filter.running, runningTexts());
    running = data.running.map((_, list) => runsOf(list).some((run) =>
      [run.version, run.revision, run.chart, run.app, ...(run.images || '').split(' ')].some((text) => text && fits(text))));
  }
  const either = []; // of host or target, one has to fit
  for (const wanted of filter.label.split(',').map((text) => text.trim()).filter(Boolean)) {
    const fitting = setsHolding((text) => text === wanted || (!wanted.includes('=') && text.startsWith(wanted + '=')));
    either.push({
      host: Array.from(hosts.labels, (index) => fitting[index]),
      target: Array.from(targets.labels, (index) => fitting[index]),
    });
  }
  const words = filter.q.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const found = holding(word);
    const sets = data.sets.map((members) => members.some((text) => found[text]) ? 1 : 0);
    return {
      found,
      sets,
      running: data.running.map((list) => list.some((run, at) => at % 2 === 0 && at + 1 < list.length && data.runs[run].some((text) => found[text]))),
      host: Array.from({ length: hosts.size }, (_, h) => found[hosts.name[h]] | found[hosts.region[h]]),
      target: Array.from({ length: targets.size }, (_, t) =>
        found[targets.name[t]] | found[targets.workspace[t]] | found[targets.workload[t]] | found[targets.version[t]]),
    };
  });
  const a = assignments;
  const inState = (i) => {
    switch (filter.state) {
      case '': return true;
      case 'pending': return a.state[i] > 1;
      case 'waiting': return a.waits[i] !== 0;
    }
    return states[a.state[i]] === filter.state;
  };
  return (i) => {
    const h = a.host[i], t = a.target[i];
    return hostFits[h] && targetFits[t] && inState(i) && (!running || running[a.running[i]]) &&
      either.every((label) => label.host[h] || label.target[t]) &&
      words.every((word) => word.running[a.running[i]] || word.host[h] || word.target[t] || word.found[a.namespace[i]] || word.found[a.message[i]] ||
        word.found[a.waits[i]] || word.found[a.version[i]] || word.found[a.source[i]] || word.sets[a.policies[i]]);
  };
}

// find returns the assignments that a filter finds, and how many there would be
// of each verdict if it said nothing of verdicts.
function find(filter) {
  const passes = passing(filter);
  const wanted = new Set(filter.verdict);
  const found = [];
  const byVerdict = [0, 0, 0, 0, 0, 0];
  for (let i = 0; i < assignments.size; i++) {
    if (!passes(i)) {
      continue;
    }
    const verdict = assignments.verdict[i];
    byVerdict[verdict]++;
    if (!wanted.size || wanted.has(verdicts[verdict])) {
      found.push(i);
    }
  }
  return { found, byVerdict };
}

// grouped puts the found into cells: rows and columns are numbers of groups, in
// the order in which the page has the objects.
function grouped(found, rows, cols) {
  const hostCount = new Set(), targetCount = new Set();
  for (const i of found) {
    hostCount.add(assignments.host[i]);
    targetCount.add(assignments.target[i]);
  }
  const workloads = new Set(), workspaces = new Set();
  for (const t of targetCount) {
    workloads.add(targets.workload[t]);
    workspaces.add(targets.workspace[t]);
  }
  if (rows === 'auto') {
    rows = hostCount.size <= 60 ? 'host' : 'region';
    if (rows === 'region' && new Set(Array.from(hostCount, (h) => hosts.region[h])).size < 2) {
      rows = 'host';
    }
  }
  if (cols === 'auto') {
    cols = targetCount.size <= 40 ? 'target' : workloads.size <= 60 || workspaces.size < 2 ? 'workload' : 'workspace';
  }
  const rowOf = axis(hosts.size, hostCount, (h) => rows === 'host' ? -1 : hosts.region[h]);
  const colOf = axis(targets.size, targetCount, (t) => cols === 'target' ? -1 : targets[cols][t]);
  const cells = new Map();
  for (const i of found) {
    const key = rowOf.at[assignments.host[i]] * colOf.members.length + colOf.at[assignments.target[i]];
    let cell = cells.get(key);
    if (!cell) {
      cells.set(key, cell = { first: i, n: 0, worst: none, by: [0, 0, 0, 0, 0, 0] });
    }
    const verdict = assignments.verdict[i];
    cell.n++;
    cell.by[verdict]++;
    cell.worst = Math.min(cell.worst, verdict);
  }
  return { rows, cols, rowMembers: rowOf.members, colMembers: colOf.members, cells };
}

// axis numbers the groups of objects; group is -1 where each is its own.
function axis(size, present, group) {
  const at = new Int32Array(size).fill(-1);
  const members = [];
  const numbers = new Map();
  const groups = [];
  for (let i = 0; i < size; i++) {
    if (!present.has(i)) {
      continue;
    }
    const key = group(i);
    let number = key < 0 ? undefined : numbers.get(key);
    if (number === undefined) {
      number = members.length;
      members.push([]);
      groups.push(key);
      numbers.set(key, number);
    }
    at[i] = number;
    members[number].push(i);
  }
  if (groups.length && groups[0] >= 0) { // groups go by name
    const order = groups.map((_, i) => i).sort((a, b) => compare(texts[groups[a]], texts[groups[b]]));
    const place = new Int32Array(groups.length);
    order.forEach((old, now) => { place[old] = now; });
    return { at: at.map((number) => number < 0 ? -1 : place[number]), members: order.map((old) => members[old]) };
  }
  return { at, members };
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
