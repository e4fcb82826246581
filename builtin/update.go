package builtin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// An update is the text of other agents' answers for one agent.
type update struct {
	answers []*schema.Item
	// seen are the labels of answers that the agent read before, by author.
	seen map[string]string
	// shared is the newest answer with a workspace, by author.
	shared     map[string]*schema.PeerAnswer
	workspaces []schema.Workspace
	// limit cuts each answer; 0: no limit.
	limit int
}

func newUpdate(r *schema.Receiver, answers []*schema.Item) *update {
	u := &update{seen: r.Peers.Seen, shared: map[string]*schema.PeerAnswer{}}
	for _, it := range answers {
		read := *it
		read.Answer = it.Answer.For(r.Agent)
		it = &read
		u.answers = append(u.answers, it)
		if it.Answer.Snapshot != nil {
			u.shared[it.Answer.Name] = it.Answer
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.shared)) {
		u.workspaces = append(u.workspaces, schema.Workspace{Name: name, Path: schema.WorkspacePath(name), Snapshot: *u.shared[name].Snapshot})
	}
	return u
}

// authors returns the authors in the order of their first answers.
func (u *update) authors() (names []string) {
	for _, it := range u.answers {
		if !slices.Contains(names, it.Answer.Name) {
			names = append(names, it.Answer.Name)
		}
	}
	return names
}

// transitions returns the old and the new label for each author.
func (u *update) transitions() string {
	var all []string
	for _, name := range u.authors() {
		first, last := u.seen[name], ""
		for _, it := range u.answers {
			if it.Answer.Name != name {
				continue
			}
			if last = it.Answer.Label; first == "" {
				first = last
			}
		}
		if first == last {
			all = append(all, last+" (new)")
		} else {
			all = append(all, first+" -> "+last)
		}
	}
	return strings.Join(all, ", ")
}

// newest returns the labels that the agent must use from now on.
func (u *update) newest() string {
	labels := map[string]string{}
	for _, it := range u.answers {
		labels[it.Answer.Name] = it.Answer.Label
	}
	names := u.authors()
	for i, name := range names {
		names[i] = labels[name]
	}
	return strings.Join(names, ", ")
}

// list renders all answers, each below its label.
func (u *update) list() string {
	var all []string
	for _, it := range u.answers {
		all = append(all, fmt.Sprintf("  [%s] (%s):\n%s", it.Answer.Label, u.workspaceOf(it.Answer), indented(u.text(it), "    ")))
	}
	return strings.Join(all, "\n\n")
}

// workspaceOf says where the files of an answer are.
func (u *update) workspaceOf(a *schema.PeerAnswer) string {
	path := schema.WorkspacePath(a.Name)
	switch shared := u.shared[a.Name]; {
	case shared == nil && a.Workspace == "":
		return "its workspace is not shared"
	case shared == nil:
		return "its workspace is not shared: you cannot open files below " + path
	case shared != a:
		return "workspace: " + path + ", as it was at " + shared.Label
	}
	return "workspace: " + path
}

// text returns an answer's text, with paths that the agent can read.
func (u *update) text(it *schema.Item) string {
	if apart(it) {
		return fmt.Sprintf("(%s; the text follows this message)", bytesOf(it.Object.Size))
	}
	text := cmp.Or(strings.TrimSpace(it.Content), "(no text)")
	return cut(schema.MoveWorkspace(text, it.Answer.Workspace, it.Answer.Name), u.limit)
}

// further renders an update for an agent that has had one before.
func (u *update) further(checklist bool) string {
	return separator + "\nNEW ANSWERS OF OTHER AGENTS - YOU MUST DECIDE ABOUT THEM\n" + separator +
		"\n\n[UPDATE: " + u.transitions() + "]\n\n" + u.list() + "\n\n" +
		framed("REQUIRED ACTION - do this before you go on", u.actions(checklist))
}

// first renders an agent's first update. It warns that the first answers need not be
// right.
func (u *update) first(checklist bool) string {
	return separator + "\nTHE FIRST ANSWERS OF OTHER AGENTS\n" + separator +
		"\n\nOthers work on the same task as you, and these are the first of their answers that you see. " +
		"They came first, which does not make them right: judge them by the task and by their files. " +
		"Your work so far is not lost; continue from there.\n\n[ANSWERS: " + u.transitions() + "]\n\n" + u.list() + "\n\n" +
		framed("REQUIRED ACTION - decide what these answers mean for your work", u.actions(checklist))
}

// restart renders the beginning of a turn for an agent that could not vote in its last
// turn.
func (u *update) restart(checklist bool) string {
	return separator + "\nYOUR TURN STARTS AGAIN: THERE ARE ANSWERS TO VOTE ON\n" + separator +
		"\n\nThese answers arrived after your last turn had started, so you could not vote for them. Now you can.\n\n" +
		"[ANSWERS: " + u.transitions() + "]\n\n" + u.list() + "\n\n" +
		framed("REQUIRED ACTION - decide with these answers before you", u.actions(checklist))
}

// actions lists what the agent must do about the answers.
func (u *update) actions(checklist bool) string {
	task := "PUT A TASK on your plan: \"Evaluate " + u.newest() + " and decide\".\n" +
		"   - Use your task tool, if you have one, so that it is not forgotten.\n"
	if len(u.workspaces) > 0 {
		task += "   - Read the files in the workspaces named above; do not rely on the text alone.\n"
	}
	steps := []string{task + "   - Compare what they did with what you did."}
	if checklist {
		steps = append(steps, "CALL submit_checklist AGAIN, scored against "+u.newest()+".\n"+
			"   - Call propose_improvements only after its result was accepted and tells you to iterate, never before.")
	}
	steps = append(steps, "THEN CHOOSE ONE:\n"+
		"   a) VOTE for an answer that is complete and correct (vote).\n"+
		"   b) BUILD on one: improve it, and submit your own answer (new_answer).\n"+
		"   c) MERGE: put the best of theirs and of yours together, and submit that.\n"+
		"   d) CONTINUE with your own, if you can say why it is better.")
	for i, s := range steps {
		steps[i] = fmt.Sprintf("%d. %s", i+1, s)
	}
	return "\n" + strings.Join(steps, "\n\n") + "\n\nUse the labels above for the answers. You must choose one of these options.\n"
}
