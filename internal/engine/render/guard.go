package render

import (
	"reflect"
	"strconv"
	"sync"
	"text/template/parse"
)

// guard rewrites a parsed template so that it cannot print a missing value and cannot run forever. text/template passes a
// missing value as nil, which many functions print as "" or "<nil>". A guard measures each argument and printed value, and
// refuses nil unless the function accepts it.
type guard struct {
	tree    *parse.Tree
	mutates bool            // calls a function that changes maps
	reads   map[string]bool // fields that the template reads, without those of [guard.isSlot]; "" is any other value
	isRoot  bool            // "." is the unchanged data of the assignment
}

// Functions that guards call. Templates cannot, because they are added after parsing.
const (
	printFunction = "_print" // (source, value): a printed value, not nil
	textFunction  = "_text"  // (source, value): an argument that is formatted as Go does
	needFunction  = "_need"  // (shallow, source, value): an argument, not nil
	takeFunction  = "_take"  // (shallow, value): an argument, may be nil
	stepFunction  = "_step"  // an iteration of a loop
	enterFunction = "_enter" // before a call of a template
	leaveFunction = "_leave" // after it
)

var acceptsMissing = newSet(
	"and", "or", "not", "eq", "ne", "default", "empty", "coalesce", "ternary", "all", "any", "hasKey", "get", "dig",
	"kindOf", "kindIs", "typeOf", "typeIs", "typeIsLike", "deepEqual", "has", "mustHas")

// readsShallowly lists functions that do not read inside maps and lists, which may have unknown values.
var readsShallowly = newSet(
	"default", "empty", "coalesce", "ternary", "all", "any", "hasKey", "get", "dig", "index", "dict", "list", "tuple", "set",
	"append", "push", "prepend", "mustAppend", "mustPush", "mustPrepend", "pick", "omit", "pluck", "keys", "len", "unset",
	"tpl")

// formatsValues lists functions that print an inner null as "<nil>".
var formatsValues = newSet(
	"print", "println", "printf", "html", "js", "urlquery", "quote", "squote", "toString", "toStrings", "cat", "join",
)

// mutatesMaps lists functions that change a map, or run a template that may.
var mutatesMaps = newSet("set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite", "tpl")

// isLazy lists functions whose arguments are evaluated only if needed.
var isLazy = newSet("and", "or")

func newSet(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

func (g *guard) guardBody(list *parse.ListNode) {
	if list == nil {
		return
	}
	nodes := make([]parse.Node, 0, len(list.Nodes))
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			if g.isSlot(node.Pipe) {
				break
			}
			source, isSafe := sourceOf(node.Pipe.Cmds), g.isSafe(node.Pipe.Cmds)
			g.guardPipe(node.Pipe)
			if len(node.Pipe.Decl) == 0 && !isSafe {
				node.Pipe.Cmds = append(node.Pipe.Cmds, g.newCall(node.Pipe.Pos, printFunction, g.newText(node.Pipe.Pos, source)))
			}
		case *parse.IfNode:
			g.guardBranch(&node.BranchNode, true)
		case *parse.WithNode:
			g.guardBranch(&node.BranchNode, false)
		case *parse.RangeNode:
			g.guardBranch(&node.BranchNode, false)
			node.Pipe.Cmds = append(node.Pipe.Cmds, g.newCall(node.Pipe.Pos, takeFunction, g.newFlag(node.Pipe.Pos, true)))
			node.List.Nodes = append([]parse.Node{g.newAction(node.Pos, node.Line, stepFunction)}, node.List.Nodes...)
		case *parse.TemplateNode:
			g.reads[""] = true
			g.guardPipe(node.Pipe)
			nodes = append(nodes, g.newAction(node.Pos, node.Line, enterFunction), node,
				g.newAction(node.Pos, node.Line, leaveFunction))
			continue
		}
		nodes = append(nodes, node)
	}
	list.Nodes = nodes
}

func (g *guard) guardBranch(node *parse.BranchNode, isSameDot bool) {
	g.guardPipe(node.Pipe)
	wasRoot := g.isRoot
	g.isRoot = wasRoot && isSameDot
	g.guardBody(node.List)
	g.isRoot = wasRoot
	g.guardBody(node.ElseList)
}

func (g *guard) guardPipe(pipe *parse.PipeNode) {
	if pipe == nil {
		return
	}
	sources := make([]string, len(pipe.Cmds))
	for i := range pipe.Cmds {
		sources[i] = sourceOf(pipe.Cmds[:i])
	}
	commands := make([]*parse.CommandNode, 0, 2*len(pipe.Cmds))
	for i, command := range pipe.Cmds {
		function := ""
		if identifier, ok := command.Args[0].(*parse.IdentifierNode); ok {
			function = identifier.Ident
		}
		if i > 0 && !isLazy[function] && !g.isHarmless(pipe.Cmds[:i], function) {
			commands = append(commands, g.guardCall(function, command.Pos, sources[i]))
		}
		for j, argument := range command.Args {
			command.Args[j] = g.guardArgument(function, j, argument)
		}
		commands = append(commands, command)
	}
	pipe.Cmds = commands
}

// guardArgument guards a word of a command. Word 0 is the function, or the value itself.
func (g *guard) guardArgument(function string, index int, node parse.Node) parse.Node {
	source := node.String()
	switch node := node.(type) {
	case *parse.PipeNode:
		g.guardPipe(node)
	case *parse.ChainNode:
		pipe, ok := node.Node.(*parse.PipeNode)
		if ok {
			g.guardPipe(pipe)
		}
		g.reads[""] = g.reads[""] || !ok
	case *parse.IdentifierNode:
		g.mutates = g.mutates || mutatesMaps[node.Ident]
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.NilNode:
		return node
	default:
		field, ok := node.(*parse.FieldNode)
		if ok && g.isRoot {
			g.reads[field.Ident[0]] = true
		} else {
			g.reads[""] = true
		}
	}
	if index == 0 || function == "" || isLazy[function] || g.isFixed(node) {
		return node
	}
	call := g.guardCall(function, node.Position(), source)
	call.Args = append(call.Args, node)
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: node.Position(), Cmds: []*parse.CommandNode{call}}
}

// These fields are always short strings, which need no guard.
var (
	fixedFields = newSet("DeploymentTargetName", "Namespace", "Name", "Environment", "Workspace", "Workload", "ClusterType", "Cluster",
		"ConfigVersion", "NetworkPolicy", "HostLabel", "TargetLabel", "ConfigName", "ServiceAccount", "ArgocdProject", "SecretName")
	fixedManifests = newSet("storage", "repo", "branch", "tag", "commit", "path", "chart", "version", "type")
)

// isSlot reports whether an action only prints a slot of a [shape].
func (g *guard) isSlot(pipe *parse.PipeNode) bool {
	if !g.isRoot || len(pipe.Decl) > 0 || len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return false
	}
	field, ok := pipe.Cmds[0].Args[0].(*parse.FieldNode)
	return ok && len(field.Ident) == 1 && slotFields[field.Ident[0]]
}

func (g *guard) isFixed(node parse.Node) bool {
	field, ok := node.(*parse.FieldNode)
	if !ok || !g.isRoot {
		return false
	}
	switch len(field.Ident) {
	case 1:
		return fixedFields[field.Ident[0]]
	case 2:
		return field.Ident[0] == "Manifests" && fixedManifests[field.Ident[1]]
	}
	return false
}

// boundsResult lists functions that bound their result.
var boundsResult = newSet("indent", "nindent", "trunc", "trim", "trimAll", "trimPrefix", "trimSuffix", "replace", "repeat")

// isHarmless reports whether a function needs no guard for the result of commands.
func (g *guard) isHarmless(commands []*parse.CommandNode, function string) bool {
	_, isCall := commands[len(commands)-1].Args[0].(*parse.IdentifierNode)
	return g.isSafe(commands) && (!isCall || boundsResult[function])
}

// isSafe reports whether the result of commands needs no guard for printing.
func (g *guard) isSafe(commands []*parse.CommandNode) bool {
	last := commands[len(commands)-1].Args
	if identifier, ok := last[0].(*parse.IdentifierNode); ok {
		return stringFunctions()[identifier.Ident]
	}
	return len(commands) == 1 && len(last) == 1 && g.isFixed(last[0])
}

var stringFunctions = sync.OnceValue(func() map[string]bool {
	names := newSet("print", "printf", "println", "html", "js", "urlquery")
	for name, function := range functions() {
		if reflect.TypeOf(function).Out(0).Kind() == reflect.String {
			names[name] = true
		}
	}
	return names
})

func (g *guard) guardCall(function string, position parse.Pos, source string) *parse.CommandNode {
	if function == "" || acceptsMissing[function] {
		return g.newCall(position, takeFunction, g.newFlag(position, readsShallowly[function]))
	}
	if formatsValues[function] {
		return g.newCall(position, textFunction, g.newText(position, source))
	}
	return g.newCall(position, needFunction, g.newFlag(position, readsShallowly[function]), g.newText(position, source))
}

func (g *guard) newAction(position parse.Pos, line int, function string) *parse.ActionNode {
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: position, Line: line, Cmds: []*parse.CommandNode{g.newCall(position, function)}}
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: position, Line: line, Pipe: pipe}
}

func (g *guard) newCall(position parse.Pos, function string, arguments ...parse.Node) *parse.CommandNode {
	identifier := parse.NewIdentifier(function).SetPos(position).SetTree(g.tree)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: position, Args: append([]parse.Node{identifier}, arguments...)}
}

func (g *guard) newText(position parse.Pos, text string) *parse.StringNode {
	return &parse.StringNode{NodeType: parse.NodeString, Pos: position, Quoted: strconv.Quote(text), Text: text}
}

func (g *guard) newFlag(position parse.Pos, flag bool) *parse.BoolNode {
	return &parse.BoolNode{NodeType: parse.NodeBool, Pos: position, True: flag}
}

// sourceOf returns the text of unguarded commands: `index .Labels "region" | upper`.
func sourceOf(commands []*parse.CommandNode) string {
	text := ""
	for i, command := range commands {
		if i > 0 {
			text += " | "
		}
		text += command.String()
	}
	return text
}
