package bustest

import "github.com/hookfabric/hookfabric/schema"

// decisionWords are the columns of the table: no decision, the decisions of all events, words of other systems, and an unknown
// one.
const decisionWords = `-         continue  allow     approve   ask       deny      block     retry     stop      fail      reject    DENY`

// A decisionRow is an event: the outcome of each word (- is no opinion, ! an error of the hook), the words that an error must
// name, the decision of a failed guard, the type of a stop's value, and what another value replaces.
type decisionRow struct {
	event                       schema.EventType
	comesTo                     string
	legal, policy, stop, change string
}

// decisionTable is the contract's.
var decisionTable = []decisionRow{
	{schema.SessionStart,
		`-         -         -         -         !         !         !         !         !         !         !         !`,
		"continue", "", "", ""},
	{schema.UserPromptSubmit,
		`-         -         -         -         !         deny      deny      !         !         !         !         !`,
		"continue, deny", "deny", "", ""},
	{schema.BeforeLLMCall,
		`-         -         -         -         !         !         !         !         stop      fail      fail      !`,
		"continue, fail, stop", "fail", "message", ""},
	{schema.AfterLLMCall,
		`-         -         -         -         !         !         !         retry     stop      fail      fail      !`,
		"continue, retry, fail, stop", "fail", "message", "message"},
	{schema.PreToolUse,
		`-         -         allow     allow     ask       deny      deny      !         stop      fail      fail      !`,
		"continue, allow, ask, deny, fail, stop", "deny", "any", "input"},
	{schema.PostToolUse,
		`-         -         -         -         !         deny      deny      !         stop      fail      fail      !`,
		"continue, deny, fail, stop", "", "any", "output"},
	{schema.ToolError,
		`-         -         -         -         !         deny      deny      !         stop      fail      fail      !`,
		"continue, deny, fail, stop", "", "any", "output"},
	{schema.BeforeFinalResponse,
		`-         -         -         -         !         !         retry     retry     stop      fail      fail      !`,
		"continue, retry, fail, stop", "fail", "message", "message"},
	{schema.QueryEnd,
		`-         -         -         -         !         !         !         !         stop      fail      fail      !`,
		"continue, fail, stop", "", "response", "response"},
	{schema.SessionEnd,
		`-         -         -         -         !         !         !         !         !         !         !         !`,
		"continue", "", "", ""},
}

// cellValues are the values of answers, with their possible meanings.
var cellValues = []struct{ json, may string }{
	{``, ""},
	{`null`, ""},
	{`"enough"`, "message any output response"},
	{`{"content":"enough"}`, "message any input output response"},
	{`{"role":"user","content":"enough"}`, "any input output response"},
	{`7`, "any output response"},
	{`["enough"]`, "any output response"},
}
