package contract

import "github.com/hookfabric/hookfabric/schema"

// words are what a hook may decide, in the columns of the table: nothing, all that
// some event knows, the words of other systems, and one of nobody.
const words = `-         continue  allow     approve   ask       deny      block     retry     stop      fail      reject    DENY`

// A row is an event: what each word comes to (- is no opinion, ! an error of the
// hook), the words that an error must name, what a failed guard decides instead, what
// a stop's value may be, and what another's value replaces.
type row struct {
	event                       schema.EventType
	comesTo                     string
	legal, policy, stop, change string
}

// table is the contract's.
var table = []row{
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

// values are what an answer may carry, and what each may stand for.
var values = []struct{ json, may string }{
	{``, ""},
	{`null`, ""},
	{`"enough"`, "message any output response"},
	{`{"content":"enough"}`, "message any input output response"},
	{`{"role":"user","content":"enough"}`, "any input output response"},
	{`7`, "any output response"},
	{`["enough"]`, "any output response"},
}
