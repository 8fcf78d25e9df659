// All that is known of one assignment, or of one host, at the side of the grid.

function heading(text) {
  return element('h4', {}, text);
}

function verdictOf(verdict) {
  const name = verdicts[verdict];
  return element('span', { class: 'verdict ' + name }, icon(name), name === 'none' ? 'not reported' : name);
}

// facts lists pairs of a name and what it is, without those that are not known.
function facts(...pairs) {
  const list = element('dl', { class: 'pairs' });
  for (const [name, value, kind] of pairs) {
    if (value) {
      list.append(element('div', {}, element('dt', {}, name), element('dd', { class: kind }, value)));
    }
  }
  return list;
}

function since(at) {
  const long = span(at);
  return moment(at) + (long && ' (' + long + ')');
}

function names(list) {
  const made = element('ul', { class: 'names' });
  for (const name of list) {
    made.append(element('li', {}, element('bdi', {}, name)));
  }
  return made;
}

// linksOf leads to what knows more, by the patterns whose placeholders all have a value.
function linksOf(patterns, values) {
  const list = element('ul', { class: 'names links' });
  for (const [title, pattern] of patterns) {
    let whole = true;
    const address = pattern.replace(/\{([a-z_]+)\}/g, (_, name) => {
      whole = whole && Boolean(values[name]);
      return (name === 'folder' ? values[name].split('/') : [values[name] || '']).map(encodeURIComponent).join('/');
    });
    if (whole && address.startsWith('https://')) {
      list.append(element('li', {}, element('a', { href: address, target: '_blank', rel: 'noopener noreferrer' }, element('bdi', {}, title))));
    }
  }
  return list.children.length ? [list] : [];
}

function linksOfAssignment(i) {
  if (!data.links) {
    return [];
  }
  const a = assignments, h = a.host[i], t = a.target[i], host = hostName(h), own = bareName(host), c = clusterOf(h);
  return linksOf(data.links.assignments, {
    environment: data.links.environment, host, deployment_target: targetName(t),
    cluster: hosts.cluster[h] ? own : '', cluster_type: hosts.cluster[h] ? bareName(texts[clusters.type[c] || 0]) : own,
    workload: texts[targets.workload[t] || 0], workspace: texts[targets.workspace[t] || 0], namespace: texts[a.namespace[i]],
    commit: data.trees[a.commit[i]], folder: [data.links.path, host, targetName(t)].filter(Boolean).join('/'),
  });
}

// bareName is a name without the path of its owner, and without "clusters/".
function bareName(name) {
  return name.slice(name.lastIndexOf('/') + 1);
}

// followed is the name that a cluster, or its type, has whose folder a host is.
function followed(h) {
  return hosts.cluster[h] ? hostName(h).replace(/(^|\/)clusters\/([^/]*)$/, '$1$2') : hostName(h);
}

// clusterOf is the cluster that a host is; -1 for a cluster type.
function clusterOf(h) {
  const own = followed(h);
  return hosts.cluster[h] ? Array.from(clusters.name).findIndex((name) => texts[name] === own) : -1;
}

function linksOfCluster(c) {
  return data.links && c >= 0 ? linksOf(data.links.clusters, {
    environment: data.links.environment, cluster: bareName(texts[clusters.name[c]]), cluster_type: bareName(texts[clusters.type[c]]), commit: data.trees[clusters.commit[c]],
  }) : [];
}

function detailHead(title, below, close) {
  const closer = element('button', { type: 'button', class: 'close', 'aria-label': 'Close' }, '×');
  closer.addEventListener('click', close);
  return element('div', { class: 'detail-head' }, element('div', {}, element('h3', {}, element('bdi', {}, title)), below), closer);
}

function detailOf(i, close) {
  const a = assignments, h = a.host[i], t = a.target[i];
  const made = [
    detailHead(targetName(t), element('p', {}, 'on ', element('bdi', { class: 'strong' }, hostName(h))), close),
    element('p', { class: 'status' }, verdictOf(a.verdict[i]),
      a.since[i] ? element('span', { class: 'quiet' }, 'since ' + since(a.since[i])) : ''),
  ];
  if (a.message[i]) {
    made.push(element('p', { class: 'message' }, element('bdi', {}, texts[a.message[i]])));
  }
  if (a.waits[i]) {
    made.push(element('p', { class: 'waits' }, element('b', {}, 'Waits for '), element('bdi', {}, texts[a.waits[i]])));
  }
  made.push(...linksOfAssignment(i), heading('Why it is there'));
  const policies = set(a.policies[i]);
  made.push(policies.length ? element('p', {}, policies.length === 1 ? 'By target policy' : 'By target policies') :
    element('p', {}, 'It is assigned by name, by no target policy.'));
  if (policies.length) {
    made.push(names(policies));
  }
  made.push(heading('What is there'), facts(
    ['Wanted version', texts[targets.version[t] || 0], 'mono'],
    ['Version on the branch', a.version[i] !== targets.version[t] ? texts[a.version[i]] : '', 'mono'],
    ['Workload', texts[targets.workload[t] || 0]],
    ['Workspace', texts[targets.workspace[t] || 0]],
    ['Namespace', texts[a.namespace[i]], 'mono'],
    ['State', states[a.state[i]]],
    ['Changed last', [a.commit[i] && data.trees[a.commit[i]], since(a.changed[i])].filter(Boolean).join(', ')],
    ['Came from', texts[a.source[i]], 'mono'],
    ['Wanted tree', data.trees[a.tree[i]], 'mono'],
    ['Deployed tree', a.state[i] > 1 ? data.trees[a.deployed[i]] : '', 'mono'],
  ));
  made.push(...runningOf(a.running[i]), ...valuesOf(a.snapshot[i]), ...clustersOf(i));
  for (const [title, labels] of [['Labels of the host', hosts.labels[h]], ['Labels of the deployment target', targets.labels[t]]]) {
    if (set(labels).length) {
      made.push(heading(title), names(set(labels)));
    }
  }
  return made;
}

// runningOf is what clusters run of an assignment.
function runningOf(list) {
  const runs = runsOf(list);
  return runs.length ? [heading('What runs'), ...runs.map((run) => run.version === undefined ?
    element('p', { class: 'quiet' }, 'Others on ' + counted(run.clusters, 'cluster')) : facts(
      ['Running version', run.version, 'mono'],
      ['Revision', run.revision, 'mono'],
      ['Chart', run.chart, 'mono'],
      ['Application', run.app, 'mono'],
      ['Images', run.images, 'mono'],
      ['On', counted(run.clusters, 'cluster')],
    ))] : [];
}

// valuesOf is the snapshot: each value with the container that it comes from.
function valuesOf(snapshot) {
  if (!snapshot) {
    return [];
  }
  const [version, checked, ...values] = data.snapshots[snapshot];
  const made = [heading('Configuration')];
  if (!values.length) {
    made.push(element('p', { class: 'quiet' }, data.detail ? 'No config container gives it a value.' :
      'The fleet is too large for its values to be in this page.' + (texts[version] ? ' Their version is ' + texts[version] + '.' : '')));
    return made;
  }
  const shown = values.some((value) => data.values[value][4]);
  const list = element('ul', { class: 'values-list' });
  for (const value of values) {
    const [pointer, container, overridden, schemas, text] = data.values[value];
    const lost = set(overridden);
    const asked = set(schemas);
    list.append(element('li', {},
      element('bdi', { class: 'mono pointer' }, texts[pointer] || '(all)'),
      text ? element('bdi', { class: 'mono' }, texts[text]) : '',
      element('small', {}, ...(container ? ['from ', element('bdi', {}, texts[container])] : ['no config container gives it']),
        ...(lost.length ? [', over ', element('bdi', {}, lost.join(', '))] : []),
        ...(asked.length ? ['; asked for by ', element('bdi', {}, asked.join(', '))] : checked ? ['; no schema asks for it'] : []))));
  }
  made.push(element('p', { class: 'quiet' }, counted(values.filter((value) => data.values[value][1]).length, 'value') + (texts[version] ? ', version ' + texts[version] : '') +
    (shown ? '' : '. The values themselves are not in this page.')), list);
  return made;
}

// clustersOf says what its clusters report: how many of each verdict, and which
// clusters of the host are not ready.
function clustersOf(i) {
  const counts = data.counts[assignments.counts[i]];
  const all = counts.reduce((sum, n) => sum + n, 0);
  if (!all) {
    return [];
  }
  const list = element('ul', { class: 'tiles' });
  counts.forEach((n, verdict) => {
    if (n) {
      list.append(element('li', {}, verdictOf(verdict), element('b', { class: 'num' }, number(n))));
    }
  });
  return [heading('On ' + counted(all, 'cluster')), list, ...clustersNotReady(assignments.host[i])];
}

// clustersNotReady lists the clusters of a host that are not ready.
function clustersNotReady(host) {
  const made = [];
  const own = followed(host);
  const rows = element('tbody');
  let more = 0;
  for (let c = 0; c < clusters.size; c++) {
    if (texts[hosts.cluster[host] ? clusters.name[c] : clusters.type[c]] !== own || clusters.verdict[c] > 3) {
      continue;
    }
    if (rows.children.length === 50) {
      more++;
      continue;
    }
    rows.append(element('tr', {}, element('th', { scope: 'row' }, element('bdi', {}, texts[clusters.name[c]]), ...linksOfCluster(c)),
      element('td', {}, verdictOf(clusters.verdict[c])), element('td', { class: 'mono' }, data.trees[clusters.commit[c]]),
      element('td', { class: 'num' }, clusters.behind[c] > 1 ? number(clusters.behind[c] - 1) + ' behind' : '')));
  }
  if (rows.children.length) {
    made.push(element('p', { class: 'quiet' }, 'Clusters of this host that are not ready, all their assignments taken together:'));
    made.push(element('table', { class: 'values' }, rows));
  }
  if (more) {
    made.push(element('p', { class: 'quiet' }, counted(more, 'more cluster')));
  }
  return made;
}

// hostOf is what is known of a host.
function hostOf(h, close) {
  const score = hosts.score[h] - 1, by = [0, 0, 0, 0, 0, 0];
  for (let i = 0; i < assignments.size; i++) {
    if (assignments.host[i] === h) {
      by[assignments.verdict[i]]++;
    }
  }
  const list = element('ul', { class: 'tiles' });
  by.forEach((n, verdict) => {
    if (n) {
      list.append(element('li', {}, verdictOf(verdict), element('b', { class: 'num' }, number(n))));
    }
  });
  const made = [detailHead(hostName(h), element('p', { class: 'quiet' }, hosts.cluster[h] ? 'One cluster' : 'Cluster type' +
    (hosts.clusters[h] ? ', ' + counted(hosts.clusters[h], 'cluster') : '')), close), ...linksOfCluster(clusterOf(h))];
  if (score >= 0) {
    made.push(heading('Health'), element('p', {}, element('b', { class: 'grade ' + gradeOf(score) }, score + ', ' + gradeOf(score))),
      ...set(hosts.parts[h]).map((part) => element('p', { class: 'quiet' }, element('bdi', {}, part))));
  }
  made.push(heading(counted(by.reduce((sum, n) => sum + n, 0), 'assignment')), list);
  const troubled = clustersNotReady(h);
  if (troubled.length) {
    made.push(heading('Clusters'), ...troubled);
  }
  if (set(hosts.labels[h]).length) {
    made.push(heading('Labels'), names(set(hosts.labels[h])));
  }
  return made;
}

function gradeOf(score) {
  return score >= data.good ? 'good' : score < data.poor ? 'poor' : 'fair';
}
