// A grid that draws only the cells that can be seen: rows and columns in any
// number, one stop for the Tab key, and arrows within.

// element makes an element. Texts are only ever texts.
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== null && value !== false) {
      made.setAttribute(key, value === true ? '' : value);
    }
  }
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== ''));
  return made;
}

const svgSpace = 'http://www.w3.org/2000/svg';

function icon(verdict) {
  const made = document.createElementNS(svgSpace, 'svg');
  made.setAttribute('class', 'icon ' + verdict);
  made.setAttribute('viewBox', '0 0 16 16');
  made.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(svgSpace, 'use');
  use.setAttribute('href', '#i-' + verdict);
  made.append(use);
  return made;
}

class Grid {
  constructor(box) {
    this.box = box;
    this.lines = new Map(); // rows that are drawn, by number
    this.at = { row: 0, col: 0 }; // where the keyboard is; row -1 is the heads of the columns, col -1 those of the rows
    this.scroller = element('div', { class: 'grid', role: 'grid' });
    this.space = element('div', { class: 'space', role: 'presentation' });
    this.head = element('div', { class: 'line head', role: 'row', 'aria-rowindex': 1 });
    this.scroller.append(this.space);
    box.append(this.scroller);
    this.scroller.addEventListener('scroll', () => this.later());
    this.scroller.addEventListener('keydown', (event) => this.key(event));
    this.scroller.addEventListener('click', (event) => this.click(event));
    new ResizeObserver(() => this.later()).observe(this.scroller);
  }

  // show draws a model: {label, rows, cols, rowHeight, headHeight, headWidth, width(col), corner, rowHead(row),
  // colHead(col), cell(row, col), activate(row, col)}. What it gives for a cell is {label, class, title, nodes}.
  show(model) {
    this.model = model;
    this.lefts = [model.headWidth];
    for (let col = 0; col < model.cols; col++) {
      this.lefts.push(this.lefts[col] + model.width(col));
    }
    const width = this.lefts[model.cols], height = model.headHeight + model.rows * model.rowHeight;
    this.space.style.width = width + 'px';
    this.space.style.height = height + 'px';
    this.head.style.height = model.headHeight + 'px';
    this.head.style.width = width + 'px';
    this.scroller.setAttribute('aria-label', model.label);
    this.scroller.setAttribute('aria-rowcount', model.rows + 1);
    this.scroller.setAttribute('aria-colcount', model.cols + 1);
    this.scroller.hidden = model.rows === 0;
    this.lines.clear();
    this.head.replaceChildren();
    this.head.drawn = new Map();
    this.space.replaceChildren(this.head);
    this.at.row = Math.min(this.at.row, model.rows - 1);
    this.at.col = Math.min(this.at.col, model.cols - 1);
    this.draw();
  }

  later() {
    if (!this.waiting && this.model) {
      this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
    }
  }

  // range is what can be seen, and a little more.
  range() {
    const { model, scroller } = this;
    const top = scroller.scrollTop, left = scroller.scrollLeft;
    const firstRow = Math.max(0, Math.floor(top / model.rowHeight) - 2);
    const lastRow = Math.min(model.rows - 1, Math.ceil((top + scroller.clientHeight - model.headHeight) / model.rowHeight) + 1);
    let firstCol = 0, lastCol = model.cols - 1;
    while (firstCol < lastCol && this.lefts[firstCol + 1] < left + model.headWidth) {
      firstCol++;
    }
    while (lastCol > firstCol && this.lefts[lastCol] > left + scroller.clientWidth) {
      lastCol--;
    }
    return { firstRow, lastRow, firstCol, lastCol };
  }

  draw() {
    const { model, at } = this;
    const seen = this.range();
    const inCols = (col) => col === -1 || (col >= seen.firstCol && col <= seen.lastCol) || col === at.col;
    const inRows = (row) => (row >= seen.firstRow && row <= seen.lastRow) || row === at.row;
    for (const [row, line] of this.lines) {
      if (!inRows(row)) {
        line.remove();
        this.lines.delete(row);
      }
    }
    const fresh = document.createDocumentFragment();
    const fill = (line, row) => {
      for (const [col, cell] of line.drawn) {
        if (!inCols(col)) {
          cell.remove();
          line.drawn.delete(col);
        }
      }
      for (const col of new Set([-1, ...this.cols(seen), at.col])) {
        if (!line.drawn.has(col) && col < model.cols) {
          const cell = this.make(row, col);
          line.drawn.set(col, cell);
          line.append(cell);
        }
      }
    };
    const rows = [];
    for (let row = seen.firstRow; row <= seen.lastRow; row++) {
      rows.push(row);
    }
    if (at.row >= 0 && !rows.includes(at.row)) {
      rows.push(at.row);
    }
    for (const row of rows) {
      let line = this.lines.get(row);
      if (!line) {
        line = element('div', { class: 'line' + (row % 2 ? ' odd' : ''), role: 'row', 'aria-rowindex': row + 2 });
        line.style.top = model.headHeight + row * model.rowHeight + 'px';
        line.style.height = model.rowHeight + 'px';
        line.style.width = this.lefts[model.cols] + 'px';
        line.drawn = new Map();
        this.lines.set(row, line);
        fresh.append(line);
      }
      fill(line, row);
    }
    fill(this.head, -1);
    this.space.append(fresh);
  }

  * cols(seen) {
    for (let col = seen.firstCol; col <= seen.lastCol; col++) {
      yield col;
    }
  }

  make(row, col) {
    const { model, at } = this;
    const given = row < 0 ? (col < 0 ? model.corner : model.colHead(col)) : col < 0 ? model.rowHead(row) : model.cell(row, col);
    const role = row < 0 ? 'columnheader' : col < 0 ? 'rowheader' : 'gridcell';
    const cell = element('div', {
      role, class: 'cell ' + (given.class || ''), 'aria-colindex': col + 2, title: given.title,
      tabindex: row === at.row && col === at.col ? 0 : -1,
    }, ...given.nodes);
    if (given.label) { // what is read out in place of what is shown
      for (const node of cell.children) {
        node.setAttribute('aria-hidden', 'true');
      }
      cell.append(element('span', { class: 'hidden' }, given.label));
    }
    if (col >= 0) {
      cell.style.left = this.lefts[col] + 'px';
    }
    cell.style.width = (col < 0 ? model.headWidth : model.width(col)) + 'px';
    cell.row = row;
    cell.col = col;
    return cell;
  }

  cellAt(row, col) {
    const line = row < 0 ? this.head : this.lines.get(row);
    return line && line.drawn.get(col);
  }

  // move puts the keyboard on a cell, and shows it.
  move(row, col, focus) {
    const { model, scroller } = this;
    const before = this.cellAt(this.at.row, this.at.col);
    if (before) {
      before.tabIndex = -1;
    }
    this.at = { row: Math.max(-1, Math.min(row, model.rows - 1)), col: Math.max(-1, Math.min(col, model.cols - 1)) };
    if (this.at.row >= 0) {
      const top = this.at.row * model.rowHeight, room = scroller.clientHeight - model.headHeight - model.rowHeight;
      scroller.scrollTop = Math.min(top, Math.max(scroller.scrollTop, top - room));
    }
    if (this.at.col >= 0) {
      const left = this.lefts[this.at.col], width = model.width(this.at.col);
      scroller.scrollLeft = Math.min(left - model.headWidth, Math.max(scroller.scrollLeft, left + width - scroller.clientWidth));
    }
    this.draw();
    const cell = this.cellAt(this.at.row, this.at.col);
    cell.tabIndex = 0;
    if (focus) {
      cell.focus({ preventScroll: true });
    }
  }

  // next is the next cell that holds something, in a direction.
  next(down, right) {
    let { row, col } = this.at;
    do {
      row += down;
      col += right;
    } while (row >= 0 && col >= 0 && row < this.model.rows && col < this.model.cols && !this.model.holds(row, col));
    return [row, col];
  }

  key(event) {
    const { row, col } = this.at;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.model.rowHeight) - 2);
    const ctrl = event.ctrlKey || event.metaKey;
    const steps = {
      ArrowUp: () => ctrl ? this.next(-1, 0) : [row - 1, col],
      ArrowDown: () => ctrl ? this.next(1, 0) : [row + 1, col],
      ArrowLeft: () => ctrl ? this.next(0, -1) : [row, col - 1],
      ArrowRight: () => ctrl ? this.next(0, 1) : [row, col + 1],
      PageUp: () => [Math.max(0, row - page), col],
      PageDown: () => [row + page, col],
      Home: () => ctrl ? [0, 0] : [row, -1],
      End: () => ctrl ? [this.model.rows - 1, this.model.cols - 1] : [row, this.model.cols - 1],
    };
    if (steps[event.key] && !event.altKey) {
      event.preventDefault();
      this.move(...steps[event.key](), true);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.model.activate(row, col);
    }
  }

  click(event) {
    const cell = event.target.closest('.cell');
    if (cell) {
      this.move(cell.row, cell.col, true);
      this.model.activate(cell.row, cell.col);
    }
  }
}
