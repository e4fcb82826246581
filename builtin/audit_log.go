package builtin

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/redact"
	"github.com/hookfabric/hookfabric/workers"
)

// The limits of the options of an audit file.
const (
	minAuditBytes = 64 << 10
	defaultKeep   = 5
	maxKeep       = 1000
)

// auditOptions are the options of "audit_log".
type auditOptions struct {
	// File is the absolute path of the file on the worker's machine. Its folder must
	// exist.
	File string `json:"file"`
	// Content adds the tools' input, without secrets.
	Content bool `json:"content"`
	// MaxBytes rotates the file before it gets larger; 0: never.
	MaxBytes int64 `json:"max_bytes"`
	// Keep is how many old files are kept, as file.1 (the newest), file.2, …; absent: 5.
	Keep *int `json:"keep"`
}

// newAuditLog makes the hook "audit_log": it writes one line of JSON per event to a file.
// It has no opinion. If a line cannot be written, the hook fails, and its failure policy
// decides.
func newAuditLog(h schema.Hook) (workers.Handler, error) {
	o, err := options[auditOptions](h)
	if err != nil {
		return nil, err
	}
	keep := defaultKeep
	if o.Keep != nil {
		keep = *o.Keep
	}
	switch {
	case !filepath.IsAbs(o.File):
		return nil, fmt.Errorf("the option \"file\" of %q is %q; write the absolute path of a file on the worker's machine", h.Handler, o.File)
	case o.MaxBytes < 0 || o.MaxBytes > 0 && o.MaxBytes < minAuditBytes:
		return nil, fmt.Errorf("the option \"max_bytes\" of %q is %d; write at least %d, or 0 for one file without a limit", h.Handler, o.MaxBytes, minAuditBytes)
	case keep < 0 || keep > maxKeep:
		return nil, fmt.Errorf("the option \"keep\" of %q is %d; write how many old files are kept, 0 to %d", h.Handler, keep, maxKeep)
	}
	return &auditLog{hook: h.Name, content: o.Content, file: &appender{path: filepath.Clean(o.File), limit: o.MaxBytes, keep: keep}}, nil
}

// auditLog writes lines to one file.
type auditLog struct {
	hook    string
	content bool
	file    *appender
}

// auditLine is one line of the file. Sizes stand for content that is not written.
type auditLine struct {
	Time         time.Time        `json:"time"`
	Hook         string           `json:"hook"`
	Event        schema.EventType `json:"event"`
	EventID      string           `json:"event_id,omitzero"`
	Agent        string           `json:"agent,omitzero"`
	Session      string           `json:"session,omitzero"`
	Orchestrator string           `json:"orchestrator,omitzero"`
	Runtime      string           `json:"runtime,omitzero"`
	Tool         string           `json:"tool,omitzero"`
	ToolKind     string           `json:"tool_kind,omitzero"`
	ToolUseID    string           `json:"tool_use_id,omitzero"`
	Cwd          string           `json:"cwd,omitzero"`
	Iteration    int              `json:"iteration,omitzero"`
	InputBytes   int              `json:"input_bytes,omitzero"`
	OutputBytes  int              `json:"output_bytes,omitzero"`
	PromptBytes  int              `json:"prompt_bytes,omitzero"`
	ErrorBytes   int              `json:"error_bytes,omitzero"`
	ToolInput    jsontext.Value   `json:"tool_input,omitzero"`
}

// Handle appends the line of e.
func (a *auditLog) Handle(_ context.Context, e *schema.Event) (schema.Result, error) {
	line := auditLine{
		Time: time.Now().UTC(), Hook: a.hook, Event: e.HookType, EventID: e.EventID, Agent: e.AgentID, Session: e.SessionID,
		Orchestrator: e.OrchestratorID, Runtime: e.Runtime, Tool: e.ToolName, ToolKind: e.ToolKind, ToolUseID: e.ToolUseID,
		Cwd: e.Cwd, Iteration: e.Iteration, InputBytes: len(e.ToolInput), OutputBytes: len(e.ToolOutput),
		PromptBytes: len(e.Prompt), ErrorBytes: len(e.Error),
	}
	if a.content {
		line.ToolInput = redact.Value(e.ToolInput)
	}
	b, err := schema.Marshal(&line)
	if err != nil {
		return schema.Result{}, fmt.Errorf("encoding the audit line as JSON: %w", err)
	}
	return schema.Result{}, a.file.append(append(b, '\n'))
}

// Close closes the file.
func (a *auditLog) Close() error { return a.file.close() }
