package render

import (
	"reflect"
	"strconv"
	"sync"
	"text/template/parse"
)

// guard rewrites a parsed template so that it cannot print a missing value, and cannot run for ever.
//
// text/template passes a missing value as nil, and many functions print nil as nothing or as "<nil>". So every
// argument and every printed value goes through a guard: a function that refuses nil, unless the called function
// accepts it, and counts the size of the value. Loops and calls of other templates are counted, too.
type guard struct {
	tree    *parse.Tree
	mutates bool            // a function was seen that changes maps
	reads   map[string]bool // fields of the data that were seen, but for those that [isSlot] is for; "" is anything else
	isRoot  bool            // "." is the data of the assignment, which the template does not change
}

// Names of the functions that guards call. Templates cannot: they are added after parsing.
const (
	printFunction = "_print" // (source, value): a value that is printed, which must not be nil
	textFunction  = "_text"  // (source, value): an argument that a function formats as Go does
	needFunction  = "_need"  // (shallow, source, value): an argument that must not be nil
	takeFunction  = "_take"  // (shallow, value): an argument that may be nil
	stepFunction  = "_step"  // one iteration of a loop
	enterFunction = "_enter" // before a call of another template
	leaveFunction = "_leave" // after it
)

// asking are the functions that accept a missing value.
var acceptsMissing = newSet(
	"and", "or", "not", "eq", "ne", "default", "empty", "coalesce", "ternary", "all", "any", "hasKey", "get", "dig",
	"kindOf", "kindIs", "typeOf", "typeIs", "typeIsLike", "deepEqual", "has", "mustHas",
)

// shallow are the functions that do not read the values inside of a map or a list. Their arguments may have values in
// them that are not known yet, as "." has with .Repo.
var readsShallowly = newSet(
	"default", "empty", "coalesce", "ternary", "all", "any", "hasKey", "get", "dig", "index", "dict", "list", "tuple", "set",
	"append", "push", "prepend", "mustAppend", "mustPush", "mustPrepend", "pick", "omit", "pluck", "keys", "len", "unset",
	"tpl",
)

// formatting are the functions that format values as Go does, which prints a null inside of them as "<nil>".
var formatsValues = newSet(
	"print", "println", "printf", "html", "js", "urlquery", "quote", "squote", "toString", "toStrings", "cat", "join",
)

// mutating are the functions that change a map, or may run a template that does.
var mutatesMaps = newSet("set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite", "tpl")

// lazy are the functions whose arguments text/template does not evaluate unless needed.
var isLazy = newSet("and", "or")

func newSet(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// body guards a list of nodes.
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
			source, isSafe := sourceOf(node.Pipe.Cmds), g.isSafe(node.Pipe)
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

// branch guards a node whose body may have another ".".
func (g *guard) guardBranch(node *parse.BranchNode, isSameDot bool) {
	g.guardPipe(node.Pipe)
	wasRoot := g.isRoot
	g.isRoot = wasRoot && isSameDot
	g.guardBody(node.List)
	g.isRoot = wasRoot
	g.guardBody(node.ElseList)
}

// pipe guards the arguments of every function that the pipeline calls.
func (g *guard) guardPipe(pipe *parse.PipeNode) {
	if pipe == nil {
		return
	}
	sources := make([]string, len(pipe.Cmds)) // before anything below is rewritten
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

// argument guards one word of a command. The word with index 0 is the function, or the value itself.
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

// fixed are the fields of the data, and of its manifests, that are always short strings.
var (
	fixedFields = newSet("DeploymentTargetName", "Namespace", "Name", "Environment", "Workspace", "Workload", "ClusterType", "Cluster",
		"ConfigVersion", "NetworkPolicy", "HostLabel", "TargetLabel", "ConfigName", "ServiceAccount", "ArgocdProject", "SecretName")
	fixedManifests = newSet("storage", "repo", "branch", "tag", "commit", "path", "chart", "version", "type")
)

// isSlot says whether an action only writes a name that a [shape] has a slot for.
func (g *guard) isSlot(pipe *parse.PipeNode) bool {
	if !g.isRoot || len(pipe.Decl) > 0 || len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return false
	}
	field, ok := pipe.Cmds[0].Args[0].(*parse.FieldNode)
	return ok && len(field.Ident) == 1 && slotFields[field.Ident[0]]
}

// isFixed says whether a word is certain to be a short string, and so needs no guard.
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

// bounded are the functions whose result is not larger than their arguments, or that check its size.
var boundsResult = newSet("indent", "nindent", "trunc", "trim", "trimAll", "trimPrefix", "trimSuffix", "replace", "repeat")

// isHarmless says whether the result of commands can be passed to a function without a guard.
func (g *guard) isHarmless(commands []*parse.CommandNode, function string) bool {
	last := commands[len(commands)-1].Args
	if identifier, ok := last[0].(*parse.IdentifierNode); ok {
		return boundsResult[function] && stringFunctions()[identifier.Ident]
	}
	return len(commands) == 1 && len(last) == 1 && g.isFixed(last[0])
}

// isSafe says whether the result of a pipeline can be printed without a guard.
func (g *guard) isSafe(pipe *parse.PipeNode) bool {
	last := pipe.Cmds[len(pipe.Cmds)-1].Args[0]
	if identifier, ok := last.(*parse.IdentifierNode); ok {
		return stringFunctions()[identifier.Ident]
	}
	return len(pipe.Cmds) == 1 && len(pipe.Cmds[0].Args) == 1 && g.isFixed(last)
}

// stringFunctions are the functions that always return a string, never nil.
var stringFunctions = sync.OnceValue(func() map[string]bool {
	names := newSet("print", "printf", "println", "html", "js", "urlquery")
	for name, function := range functions() {
		if reflect.TypeOf(function).Out(0).Kind() == reflect.String {
			names[name] = true
		}
	}
	return names
})

// pass is the command that calls a guard with a value.
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

// sourceOf is the text of commands before they were guarded: "index .Labels "region" | upper".
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
