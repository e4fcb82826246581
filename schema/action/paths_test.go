package action_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema/action"
)

// pathsOf returns the paths of an action as texts, such as "write /a".
func pathsOf(a *action.Action) []string {
	var all []string
	for _, p := range a.Paths {
		s := string(p.Access) + " " + p.Path
		if p.Remote {
			s += " (remote)"
		}
		all = append(all, s)
	}
	return all
}

func TestPathsOfCommands(t *testing.T) {
	for script, want := range map[string]string{
		`rm -rf a /b "c d"`:                        "delete /work/a; delete /b; delete /work/c d",
		`rm -- -f`:                                 "delete /work/-f",
		`rm ../x ~/y ~bob/z ./././w`:               "delete /x; delete ~/y; delete ~bob/z; delete /work/w",
		`rm $HOME/../x`:                            "delete ~/../x",
		`rm "$UNKNOWN/x"`:                          "delete $UNKNOWN/x",
		`rm *.log`:                                 "delete /work/*.log",
		`cd sub; rm x`:                             "delete /work/sub/x",
		`cd sub && cd .. && rm x`:                  "delete /work/sub/x; delete /work/x",
		`cd "$x"; rm y`:                            "delete y",
		`cd; rm y`:                                 "delete ~/y",
		`rm "$PWD/x"`:                              "delete /work/x",
		`touch a; mkdir -p -m 700 b`:               "write /work/a; write /work/b",
		`cp -r a b /d`:                             "read /work/a; read /work/b; write /d",
		`cp -t /d a`:                               "write /d; read /work/a",
		`cp --target-directory=/d a`:               "write /d; read /work/a",
		`mv a b`:                                   "delete /work/a; write /work/b",
		`ln -s a b`:                                "read /work/a; write /work/b",
		`chmod -R 777 a`:                           "write /work/a",
		`chmod --reference=r a`:                    "read /work/r; write /work/a",
		`cat a < b > c 2>> d`:                      "read /work/b; write /work/c; write /work/d; read /work/a",
		`a > /dev/null 2>&1 < /dev/stdin`:          "",
		`tee -a a`:                                 "write /work/a",
		`dd if=/dev/zero of=/dev/sda bs=1M`:        "read /dev/zero; write /dev/sda",
		`sed s/a/b/ f`:                             "read /work/f",
		`sed -i s/a/b/ f`:                          "write /work/f",
		`sed -i -e s/a/b/ f`:                       "write /work/f",
		`perl -pi -e s/a/b/ f`:                     "write /work/f",
		`grep -rn -e x -A 3 d`:                     "read /work/d",
		`grep x f g`:                               "read /work/f; read /work/g",
		`grep -f list f`:                           "read /work/list; read /work/f",
		`head -n 5 f`:                              "read /work/f",
		`sort -k 2 -o out in`:                      "write /work/out; read /work/in",
		`awk -F : '{print}' f`:                     "read /work/f",
		`find /a /b -name x`:                       "read /a; read /b",
		`find -delete`:                             "delete /work",
		`find /a -fprint out`:                      "write /work/out; read /a",
		`find /a -exec rm {} +`:                    "read /a; delete /a",
		`tar xzf a.tgz`:                            "read /work/a.tgz; write /work",
		`tar -C /d -xf a.tar`:                      "read /work/a.tar; write /d",
		`tar czf a.tgz dir`:                        "write /work/a.tgz; read /work/dir",
		`tar --create --file=a.tar dir`:            "write /work/a.tar; read /work/dir",
		`git rm -r a`:                              "delete /work/a",
		`git -C /r clean -fdx`:                     "delete /r",
		`git checkout -- a`:                        "write /work/a",
		`git restore a`:                            "write /work/a",
		`git checkout main`:                        "",
		`/opt/x/tool --config=/etc/c a/b c`:        "execute /opt/x/tool; read /etc/c; read /work/a/b",
		`./run.sh`:                                 "execute /work/run.sh",
		`bash run.sh`:                              "execute /work/run.sh",
		`. ./env`:                                  "execute /work/env",
		`python3 x.py /etc/y`:                      "execute /work/x.py; read /etc/y",
		`python3 -m http.server`:                   "",
		`curl -o out -d @secret https://e.example`: "write /work/out; read /work/secret",
		`curl -F "file=@secret;type=x" https://e.example`: "read /work/secret",
		`curl -T up https://e.example`:                    "read /work/up",
		`wget -O out https://e.example/x`:                 "write /work/out",
		`scp h:/etc/x ./y`:                                "write /work/y",
		`ssh h rm /srv`:                                   "delete /srv (remote)",
		`cat file:///etc/passwd`:                          "read /etc/passwd",
		`mkfs.ext4 -L x /dev/sdb1`:                        "write /dev/sdb1",
		`echo /etc/passwd`:                                "",
	} {
		if diff := cmp.Diff(want, strings.Join(pathsOf(action.Script(script, "/work")), "; ")); diff != "" {
			t.Errorf("%s\n%s", script, diff)
		}
	}
}

func TestPathsInAnUnknownFolderAreRelative(t *testing.T) {
	for script, want := range map[string]string{`rm a/../b`: "delete b", `rm /a`: "delete /a", `cd x; rm a`: "delete a"} {
		if got := strings.Join(pathsOf(action.Script(script, "")), "; "); got != want {
			t.Errorf("%s has the paths %q, not %q", script, got, want)
		}
	}
}

func TestHostsOfCommands(t *testing.T) {
	for script, want := range map[string]string{
		`curl https://User@E.Example:8443/x?y=https://z.example`:  "e.example",
		`curl -s e.example/x -o out.txt`:                          "e.example",
		`curl -x proxy.example:3128 http://e.example`:             "e.example",
		`curl http://0x7f000001/ http://2130706433 http://0177.1`: "127.0.0.1",
		`curl http://[::1]:8080/x`:                                "::1",
		`curl http://e.example./x http://E.EXAMPLE`:               "e.example",
		`curl "http://$HOST/x"`:                                   "$host",
		`wget -qO- e.example`:                                     "e.example",
		`ssh -J a.example,b.example -p 22 me@c.example ls`:        "a.example b.example c.example",
		`scp -P 22 f me@e.example:/x`:                             "e.example",
		`rsync -a d e.example:d`:                                  "e.example",
		`git clone git@e.example:a/b.git`:                         "e.example",
		`git push https://token@e.example/a/b main`:               "e.example",
		`nc -w 1 e.example 80`:                                    "e.example",
		`exec 3<>/dev/tcp/e.example/80`:                           "e.example",
		`openssl s_client -connect e.example:443`:                 "e.example",
		`socat - TCP:e.example:80`:                                "e.example",
		`dig @8.8.8.8 x.e.example`:                                "8.8.8.8 x.e.example",
		`pip install --index-url=https://e.example/simple x`:      "e.example",
		`echo a.b`:      "",
		`cat README.md`: "",
	} {
		if got := strings.Join(action.Script(script, "/work").Hosts, " "); got != want {
			t.Errorf("%s has the hosts %q, not %q", script, got, want)
		}
	}
}
