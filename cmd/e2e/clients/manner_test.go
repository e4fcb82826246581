package clients_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
	"github.com/hookfabric/hookfabric/schema"
)

// A manner is how a client is run without a person, and what its tools are called.
type manner struct {
	// files are those that it must find in its home.
	files map[string]string
	// env are variables; @MODEL@ stands for the model's URL.
	env []string
	// args are its arguments; @MODEL@ stands for the model's URL.
	args []string
	// shell calls its tool for shell commands.
	shell func(command string) model.Call
	// spawn has a subagent follow a prompt, and waits for it, with one call after the other; nil: it is
	// not tried with one.
	spawn func(prompt string) []model.Call
	// spawning are arguments behind the first one, without which it has no subagents.
	spawning []string
	// echo calls the tool of [echoServer]; nil: it is not tried with one.
	echo func(message string) model.Call
	// server writes down that a program is that server; it may change args.
	server func(h *home, command []string)
	// install are arguments that the shim's installation needs besides.
	install []string
	// rigid: it cannot run a rewritten call, so that one that is to be rewritten is denied.
	rigid bool
	// hasty: it calls its model also for a rejected prompt.
	hasty bool
}

func manners() map[string]manner {
	return map[string]manner{
		"claude":   claude(),
		"codex":    codex(),
		"gemini":   gemini(),
		"copilot":  copilot(),
		"qwen":     qwen(),
		"opencode": opencode(),
	}
}

// described returns calls of a tool whose input has a description of the command.
func described(tool string) func(string) model.Call {
	return func(command string) model.Call {
		return model.Call{Tool: tool, Input: map[string]string{"command": command, "description": "as told"}}
	}
}

func claude() manner {
	return manner{
		env: []string{"ANTHROPIC_BASE_URL=@MODEL@", "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1"},
		args:  []string{"--print", "--output-format", "json", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash,mcp__things", "--", "do it"},
		shell: described("Bash"),
		spawn: func(prompt string) []model.Call {
			return []model.Call{{Tool: "Agent", Input: map[string]any{"description": "errand", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": false}}}
		},
		echo: func(message string) model.Call {
			return model.Call{Tool: "mcp__things__echo", Input: map[string]string{"message": message}}
		},
		server: func(h *home, command []string) {
			servers, err := schema.Marshal(map[string]any{"mcpServers": map[string]any{"things": map[string]any{"command": command[0], "args": command[1:]}}})
			if err != nil {
				h.t.Fatal(err)
			}
			h.args = append([]string{"--mcp-config", string(servers)}, h.args...)
		},
	}
}

func codex() manner {
	return manner{
		files: map[string]string{".codex/config.toml": `model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"
`},
		args: []string{"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access",
			"-c", `model_providers.scripted.base_url="@MODEL@/v1"`, "do it"},
		shell: func(command string) model.Call {
			return model.Call{Tool: "exec_command", Input: map[string]string{"cmd": command}}
		},
		spawning: []string{"--enable", "multi_agent_v2"},
		spawn: func(prompt string) []model.Call {
			const tools = "collaboration"
			return []model.Call{
				{Tool: "spawn_agent", Namespace: tools, Input: map[string]string{"task_name": "errand", "message": prompt, "fork_turns": "none"}},
				{Tool: "wait_agent", Namespace: tools, Input: map[string]int64{"timeout_ms": patience.Milliseconds()}},
			}
		},
		echo: func(message string) model.Call {
			return model.Call{Tool: "echo", Namespace: "mcp__things", Input: map[string]string{"message": message}}
		},
		server: func(h *home, command []string) {
			h.write(".codex/config.toml", h.files[".codex/config.toml"]+
				fmt.Sprintf("\n[mcp_servers.things]\ncommand = %q\nargs = [%s]\n", command[0], quoted(command[1:])))
		},
		install: []string{"--trust"},
	}
}

// echoed calls the tool of [echoServer] under the client's name of it.
func echoed(tool string) func(string) model.Call {
	return func(message string) model.Call {
		return model.Call{Tool: tool, Input: map[string]string{"message": message}}
	}
}

// listed writes the server into a file of a client's home, beside what is in it.
func listed(file string) func(h *home, command []string) {
	return func(h *home, command []string) {
		settings := map[string]any{}
		if have := h.files[file]; have != "" {
			if err := schema.Unmarshal([]byte(have), &settings); err != nil {
				h.t.Fatal(err)
			}
		}
		settings["mcpServers"] = map[string]any{"things": map[string]any{
			"type": "local", "command": command[0], "args": command[1:], "tools": []string{"*"}, "trust": true}}
		if file == ".gemini/settings.json" || file == ".qwen/settings.json" { // which know no such members
			settings["mcpServers"] = map[string]any{"things": map[string]any{"command": command[0], "args": command[1:], "trust": true}}
		}
		data, err := schema.Marshal(settings)
		if err != nil {
			h.t.Fatal(err)
		}
		h.write(file, string(data))
	}
}

func gemini() manner {
	return manner{
		echo:   echoed("mcp_things_echo"),
		server: listed(".gemini/settings.json"),
		files: map[string]string{".gemini/settings.json": `{
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
  "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false}
}
`},
		env:   []string{"GOOGLE_GEMINI_BASE_URL=@MODEL@", "GEMINI_API_KEY=none", "GEMINI_CLI_NO_RELAUNCH=true"},
		args:  []string{"--prompt", "do it", "--yolo", "--model", "gemini-2.5-flash", "--output-format", "json"},
		shell: described("run_shell_command"),
	}
}

func copilot() manner {
	return manner{
		env: []string{"COPILOT_PROVIDER_BASE_URL=@MODEL@", "COPILOT_PROVIDER_TYPE=anthropic", "COPILOT_PROVIDER_API_KEY=none",
			"COPILOT_MODEL=claude-sonnet-4.5", "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false"},
		args:  []string{"--prompt", "do it", "--allow-all-tools"},
		shell: described("bash"),
		spawn: func(prompt string) []model.Call {
			return []model.Call{{Tool: "task", Input: map[string]string{"description": "errand", "prompt": prompt, "agent_type": "general-purpose", "name": "errand"}}}
		},
		echo:   echoed("things-echo"),
		server: listed(".copilot/mcp-config.json"),
		hasty:  true,
	}
}

func qwen() manner {
	return manner{
		env: []string{"ANTHROPIC_BASE_URL=@MODEL@", "ANTHROPIC_API_KEY=none", "ANTHROPIC_MODEL=claude-sonnet-4-5",
			"QWEN_CODE_NO_RELAUNCH=true", "QWEN_TELEMETRY_ENABLED=false"},
		args: []string{"--auth-type", "anthropic", "--prompt", "do it", "--yolo"},
		shell: func(command string) model.Call {
			return model.Call{Tool: "run_shell_command", Input: map[string]any{"command": command, "description": "as told", "is_background": false}}
		},
		spawn: func(prompt string) []model.Call {
			return []model.Call{{Tool: "agent", Input: map[string]string{"description": "errand", "prompt": prompt, "subagent_type": "general-purpose"}}}
		},
		echo:   echoed("mcp__things__echo"),
		server: listed(".qwen/settings.json"),
		rigid:  true,
	}
}

func opencode() manner {
	return manner{
		// It fetches a package for its plugins at every first start, and waits for that.
		files: map[string]string{".npmrc": "offline=true\nfetch-retries=0\n"},
		env: []string{`OPENCODE_CONFIG_CONTENT={"provider":{"anthropic":{"options":{"baseURL":"@MODEL@/v1","apiKey":"none"}}},` +
			`"model":"anthropic/claude-sonnet-4-5","small_model":"anthropic/claude-sonnet-4-5","autoupdate":false,"share":"disabled"}`,
			"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
		args:  []string{"run", "do it"},
		shell: described("bash"),
		spawn: func(prompt string) []model.Call {
			return []model.Call{{Tool: "task", Input: map[string]string{"description": "errand", "prompt": prompt, "subagent_type": "general"}}}
		},
		echo: echoed("things_echo"),
		server: func(h *home, command []string) {
			server, err := schema.Marshal(map[string]any{"mcp": map[string]any{"things": map[string]any{"type": "local", "command": command}}})
			if err != nil {
				h.t.Fatal(err)
			}
			h.write(".config/opencode/opencode.json", string(server))
		},
	}
}

// quoted are words as a list in TOML has them.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strconv.Quote(w)
	}
	return strings.Join(all, ", ")
}
