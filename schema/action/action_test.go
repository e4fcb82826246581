package action_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema/action"
)

// line returns a command as one line: its wrappers with >, its name and arguments, and marks.
func line(c *action.Command) string {
	words := slices.Concat(c.Wrappers, []string{strings.Join(append([]string{c.Name}, c.Args...), " ")})
	s := strings.Join(words, " > ")
	if c.PipeTo != "" {
		s += " | " + c.PipeTo
	}
	if c.Dynamic {
		s += " (dynamic)"
	}
	if c.Remote {
		s += " (remote)"
	}
	return s
}

func lines(a *action.Action) []string {
	all := []string{}
	for i := range a.Commands {
		all = append(all, line(&a.Commands[i]))
	}
	return all
}

// checkCommands compares the commands of scripts.
func checkCommands(t *testing.T, cases map[string][]string) {
	t.Helper()
	for script, want := range cases {
		a := action.Script(script, "/work")
		if diff := cmp.Diff(want, lines(a)); diff != "" || a.Unparsed != "" {
			t.Errorf("%s (%s)\n%s", script, a.Unparsed, diff)
		}
	}
}

func TestCommandsInEveryPartOfAScript(t *testing.T) {
	checkCommands(t, map[string][]string{
		`ls; pwd && id || date &`:                  {"ls", "pwd", "id", "date"},
		`ls | sort | head -1`:                      {"ls | sort", "sort | head", "head -1"},
		`(cd /tmp; ls)`:                            {"cd /tmp", "ls"},
		`{ ls; pwd; }`:                             {"ls", "pwd"},
		`if a; then b; elif c; then d; else e; fi`: {"a", "b", "c", "d", "e"},
		`while a; do b; done`:                      {"a", "b"},
		`until a; do b; done`:                      {"a", "b"},
		`for x in 1 2; do echo $x; done`:           {"echo 1", "echo 2"},
		`for ((i=0;i<$(a);i++)); do b; done`:       {"a", "b"},
		`case $x in $(a)) b;; *) c;; esac`:         {"a", "b", "c"},
		`echo $(a "$(b)") ` + "`c`":                {"b", "a $(…)", "c", "echo $(…) $(…)"},
		`diff <(a) >(b)`:                           {"a", "b", "diff <(…) >(…)"},
		`x=$(a) y=1`:                               {"a"},
		`export x=$(a)`:                            {"a"},
		`[[ $(a) == b ]]`:                          {"a"},
		`(( $(a) > 1 ))`:                           {"a"},
		`echo ${x:-$(a)}`:                          {"a", "echo $x"},
		`coproc a`:                                 {"a"},
		`! a`:                                      {"a"},
		`time a`:                                   {"a"},
		`a > $(b)`:                                 {"b", "a"},
		"cat <<EOF\n$(a)\nEOF\n":                   {"a", "cat"},
		`f() { a; }; f`:                            {"a"},
		`f() { a; }`:                               {"a"},
		`:(){ :|:& };:`:                            {": | :", ":"},
	})
}

func TestQuotedTextIsData(t *testing.T) {
	checkCommands(t, map[string][]string{
		`git commit -m "rm -rf /"`:                {"git commit -m rm -rf /"},
		`grep -r 'rm -rf /' .`:                    {"grep -r rm -rf / ."},
		`echo rm -rf / # rm -rf /`:                {"echo rm -rf /"},
		"cat > f <<'EOF'\nrm -rf /\n$(id)\nEOF\n": {"cat"},
		"tee f <<< 'rm -rf /'":                    {"tee f"},
	})
}

func TestSpellingsOfAName(t *testing.T) {
	for _, script := range []string{
		`rm -rf /srv`, `r''m -rf /srv`, `\rm -rf /srv`, `"rm" -rf /srv`, `'r'"m" -rf /srv`, `$'\x72m' -rf /srv`, `$'rm' -rf /srv`, `{rm,-rf,/srv}`, "rm \\\n-rf /srv",
		`x=rm; $x -rf /srv`, `x='rm -rf'; $x /srv`, `a=r b=m; $a$b -rf /srv`, `x=(rm -rf /srv); "${x[@]}"`, `x=rmx; ${x%x} -rf /srv`, `x=RM; ${x,,} -rf /srv`,
		`x=r; x+=m; $x -rf /srv`, `IFS=,; x=rm,-rf,/srv; $x`, `x=rm; y=x; ${!y} -rf /srv`, `set_by=1; ${unset:-rm} -rf /srv`, `printf -v x rm; $x -rf /srv`,
		`readonly x=rm; $x -rf /srv`, `declare x=rm; $x -rf /srv`, `x=/srv; rm -rf "$x"`, `x=xrmx; ${x:1:2} -rf /srv`, `x=sm; ${x/s/r} -rf /srv`,
	} {
		got := lines(action.Script(script, "/work"))
		if want := "rm -rf /srv"; len(got) == 0 || got[len(got)-1] != want {
			t.Errorf("%s has %q, not %q", script, got, want)
		}
	}
}

func TestEachValueOfAVariableCounts(t *testing.T) {
	checkCommands(t, map[string][]string{
		`if a; then x=rm; else x=ls; fi; $x f`:      {"a", "ls f", "rm f"},
		`x=rm; a && x=ls; $x f`:                     {"a", "rm f", "ls f"},
		`case $1 in a) x=rm;; *) x=ls;; esac; $x f`: {"rm f", "ls f", "$x f (dynamic)"},
		`for x in rm ls; do $x f; done`:             {"rm f", "ls f"},
		`while a; do $x f; x=rm; done`:              {"a", "$x f (dynamic)", "rm f"},
		`x=rm; f() { x=ls; }; f; $x f`:              {"ls f"},
		`x=rm; (x=ls); $x f`:                        {"rm f"},
		`x=rm; echo | x=ls; $x f`:                   {"echo", "rm f"},
		`read x; $x f`:                              {"read x", "$x f (dynamic)"},
		`x=$(a); $x f`:                              {"a", "$x f (dynamic)"},
		`a() { "$@"; }; a rm f`:                     {"rm f"},
		`a() { $1 $2; shift; }; a rm f`:             {"rm f", "shift"},
		`unset x; $x rm f`:                          {"unset x", "rm f"},
		`x=rm; x=ls $x f`:                           {"rm f"},
		`$(echo rm) f`:                              {"echo rm", "rm f"},
		`$(printf '%s' rm) f`:                       {"printf %s rm", "rm f"},
		"$(cat <<< rm) f":                           {"cat", "rm f"},
		`$(a) f`:                                    {"a", "$(…) f (dynamic)"},
		`/usr/bin/$x f`:                             {"/usr/bin/$x f (dynamic)"},
	})
}

func TestWrappersRunACommand(t *testing.T) {
	checkCommands(t, map[string][]string{
		`sudo rm f`:                                  {"sudo > rm f"},
		`sudo -u root -E X=1 rm f`:                   {"sudo > rm f"},
		`sudo --user=root -- rm f`:                   {"sudo > rm f"},
		`sudo -nu root rm f`:                         {"sudo > rm f"},
		`doas -u root rm f`:                          {"doas > rm f"},
		`env -i -u A B=1 rm f`:                       {"env > rm f"},
		`env -S "rm f"`:                              {"env -S > rm f"},
		`env -iS"rm f"`:                              {"env -S > rm f"},
		`nohup nice -n 5 ionice -c 3 rm f &`:         {"nohup > nice > ionice > rm f"},
		`timeout -k 5 -s KILL 10s rm f`:              {"timeout > rm f"},
		`/usr/bin/time -f %e rm f`:                   {"time > rm f"},
		`stdbuf -oL rm f`:                            {"stdbuf > rm f"},
		`command rm f`:                               {"command > rm f"},
		`command -v rm`:                              {"command -v rm"},
		`exec -a x rm f`:                             {"exec > rm f"},
		`builtin eval rm f`:                          {"builtin > eval > rm f"},
		`busybox rm f`:                               {"busybox > rm f"},
		`chroot /mnt rm f`:                           {"chroot > rm f"},
		`setsid bash -c 'rm f'`:                      {"setsid > bash -c > rm f"},
		`bash -c 'rm "$1"' x f`:                      {"bash -c > rm f"},
		`bash -lc "rm f"`:                            {"bash -c > rm f"},
		`bash -o errexit -c 'rm f'`:                  {"bash -c > rm f"},
		`sh -ec 'sh -c "rm f"'`:                      {"sh -c > sh -c > rm f"},
		`zsh -c 'rm f'`:                              {"zsh -c > rm f"},
		"bash <<'EOF'\nrm f\nEOF\n":                  {"bash > rm f"},
		"bash -s <<< 'rm f'":                         {"bash > rm f"},
		`echo 'rm f' | sh`:                           {"echo rm f | sh", "sh > rm f"},
		`echo cm0gZg== | base64 -d | sh`:             {"echo cm0gZg== | base64", "base64 -d | sh", "sh > rm f"},
		`eval rm f`:                                  {"eval > rm f"},
		`eval "$(echo rm f)"`:                        {"echo rm f", "eval > rm f"},
		`eval "$x"`:                                  {"eval $x (dynamic)"},
		`a | bash`:                                   {"a | bash", "bash (dynamic)"},
		`bash -c "$x"`:                               {"bash -c $x (dynamic)"},
		`bash <(a)`:                                  {"a", "bash <(…) (dynamic)"},
		`bash script.sh f`:                           {"bash script.sh f"},
		`source <(a)`:                                {"a", "source <(…) (dynamic)"},
		`xargs -0 -n 1 rm -f`:                        {"xargs -0 -n 1 rm -f", "xargs > rm -f"},
		`echo a b | xargs rm`:                        {"echo a b | rm", "xargs rm", "xargs > rm a b"},
		`echo rm f | xargs -I{} sh -c {}`:            {"echo rm f | sh", "xargs -I{} sh -c {}", "xargs > sh -c > rm f"},
		`a | xargs sh -c`:                            {"a | sh", "xargs sh -c", "xargs > sh -c (dynamic)"},
		`parallel rm ::: a b`:                        {"parallel rm ::: a b", "parallel > rm a", "parallel > rm b"},
		`find /srv -name x -exec rm {} \;`:           {"find /srv -name x -exec rm {} ;", "find -exec > rm /srv/**/x"},
		`find -execdir sh -c 'rm "$0"' {} +`:         {"find -execdir sh -c rm \"$0\" {} +", "find -execdir > sh -c > rm $0"},
		`ssh -p 22 me@h rm f`:                        {"ssh -p 22 me@h rm f", "ssh > rm f (remote)"},
		`ssh -o ProxyCommand='rm f' h`:               {"ssh -o > rm f", "ssh -o ProxyCommand=rm f h"},
		"ssh h <<'EOF'\nrm f\nEOF\n":                 {"ssh h", "ssh > rm f (remote)"},
		`docker exec -it -u root web rm f`:           {"docker exec -it -u root web rm f", "docker exec > rm f (remote)"},
		`docker run --rm -v /:/h alpine rm f`:        {"docker run --rm -v /:/h alpine rm f", "docker run > rm f (remote)"},
		`docker compose exec web rm f`:               {"docker compose exec web rm f", "docker exec > rm f (remote)"},
		`kubectl -n x exec pod -c y -- sh -c 'rm f'`: {"kubectl -n x exec pod -c y -- sh -c rm f", "kubectl exec > sh -c > rm f (remote)"},
		`su -c 'rm f' root`:                          {"su -c rm f root", "su -c > rm f"},
		`script -qc 'rm f' /dev/null`:                {"script -qc rm f /dev/null", "script -c > rm f"},
		`flock /tmp/l rm f`:                          {"flock > rm f"},
		`watch -n 1 rm f`:                            {"watch > rm f"},
		`at now <<< 'rm f'`:                          {"at > rm f"},
		`trap 'rm f' EXIT`:                           {"trap rm f EXIT", "trap > rm f"},
		`alias l='rm f'`:                             {"alias l=rm f", "alias > rm f"},
		`git -C /r -c a=b push -f`:                   {"git -C > git push -f"},
		`git -c alias.x='!rm f' x`:                   {"git -c > rm f", "git x"},
		`git -c core.pager='rm f' log`:               {"git -c > rm f", "git log"},
		`git submodule foreach 'rm f'`:               {"git submodule foreach rm f", "git submodule foreach > rm f"},
		`git rebase -x 'rm f' main`:                  {"git rebase -x rm f main", "git rebase --exec > rm f"},
		`git bisect run rm f`:                        {"git bisect run rm f", "git bisect run > rm f"},
		`tar cf a b --checkpoint-action=exec='rm f'`: {"tar cf a b --checkpoint-action=exec=rm f", "tar > rm f"},
	})
}

func TestInlineCodeOfInterpreters(t *testing.T) {
	for script, want := range map[string]action.Code{
		`python3 -c 'x()'`:                 {"python", "x()"},
		`python -Ic "x()"`:                 {"python", "x()"},
		"python3.12 - <<'EOF'\nx()\nEOF\n": {"python", "x()\n"},
		`echo 'x()' | python3`:             {"python", "x()\n"},
		`node -e 'x()'`:                    {"javascript", "x()"},
		`node --eval='x()'`:                {"javascript", "x()"},
		`deno eval 'x()'`:                  {"javascript", "x()"},
		`perl -pe 'x()' f`:                 {"perl", "x()"},
		`ruby -e 'x()'`:                    {"ruby", "x()"},
		`php -r 'x();'`:                    {"php", "x();"},
		`awk -F: '{system("x")}' f`:        {"awk", `{system("x")}`},
		`sudo env A=1 python3 -c 'x()'`:    {"python", "x()"},
	} {
		if a := action.Script(script, ""); !cmp.Equal(a.Code, []action.Code{want}) {
			t.Errorf("%s has the code %q, not %q", script, a.Code, want)
		}
	}
	for _, script := range []string{`python3 script.py -c x`, `node app.js -e x`} {
		if a := action.Script(script, ""); a.Code != nil {
			t.Errorf("%s has the code %q", script, a.Code)
		}
	}
	if a := action.Script(`a | python3`, ""); !a.Commands[1].Dynamic {
		t.Error("python3 with an unknown program is not dynamic")
	}
}

func TestFactsOfACommand(t *testing.T) {
	a := action.Script(`A=1 B=$(id) rm -rfv --preserve-root=all --force -- -x f >out 2>>err <in 2>&1`, "/work")
	c := a.Commands[len(a.Commands)-1]
	want := action.Command{
		Name: "rm", Args: []string{"-rfv", "--preserve-root=all", "--force", "--", "-x", "f"},
		Flags: []string{"rfv", "r", "f", "v", "preserve-root", "force"}, Env: []string{"A=1", "B=$(…)"},
		Redirects: []action.Redirect{{">", "out", action.WriteAccess}, {">>", "err", action.WriteAccess}, {"<", "in", action.ReadAccess}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if a := action.Script("cat <<EOF\nx\nEOF\n", ""); a.Commands[0].Heredoc != "x\n" {
		t.Errorf("the here-document is %q", a.Commands[0].Heredoc)
	}
}
