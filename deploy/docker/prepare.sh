#!/bin/sh
# Creates the secrets of compose.yaml before its first start: a CA and a certificate for each
# process, the realm (the keys and permissions of the fabric), and credentials. It keeps existing
# files. Each kind of process has its own folder, so that a policy program of a worker cannot
# read the credentials of an operator.
#
#   prepare.sh SECRETS DATA      all brokers share the realm DATA/auth
set -eu
umask 077
secrets=$1 data=$2
mkdir -p "$secrets/authority" "$secrets/brokers" "$secrets/workers" "$secrets/tools" "$secrets/public"
authority=$secrets/authority/ca

if [ ! -e "$authority.pem" ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 \
		-subj "/CN=hookfabric authority" -addext "keyUsage=critical,keyCertSign,cRLSign" \
		-keyout "$authority.key" -out "$authority.new" 2>/dev/null
	mv "$authority.new" "$authority.pem"
fi
for folder in brokers workers tools public; do
	cp "$authority.pem" "$secrets/$folder/ca.pem"
done
chmod 0755 "$secrets/public" # Prometheus runs as another user
chmod 0644 "$secrets/public/ca.pem"

# certificate FOLDER NAME makes a certificate for a process and its host name. Brokers also use
# theirs as clients of each other.
certificate() {
	file=$secrets/$1/$2
	[ ! -e "$file.pem" ] || return 0
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$2" -keyout "$file.key" -out "$file.csr" 2>/dev/null
	cat >"$file.ext" <<-END
		basicConstraints=critical,CA:FALSE
		keyUsage=critical,digitalSignature
		extendedKeyUsage=serverAuth,clientAuth
		subjectKeyIdentifier=hash
		authorityKeyIdentifier=keyid
		subjectAltName=DNS:$2,DNS:localhost,IP:127.0.0.1
	END
	openssl x509 -req -in "$file.csr" -CA "$authority.pem" -CAkey "$authority.key" -CAcreateserial \
		-days 825 -extfile "$file.ext" -out "$file.new" 2>/dev/null
	mv "$file.new" "$file.pem"
	rm "$file.csr" "$file.ext"
}
certificate brokers broker-1
certificate brokers broker-2
certificate brokers broker-3
certificate workers worker-default
certificate workers worker-heavy

# A broker needs this secret to join the cluster. A certificate is not enough, because workers have one, too.
[ -e "$secrets/brokers/cluster.secret" ] || openssl rand -hex 32 >"$secrets/brokers/cluster.secret"

# The realm and its credentials.
[ -e "$data/auth/realm.json" ] || broker creds init --data "$data"
credentials() {
	file=$secrets/$1/$3.creds
	shift
	[ -e "$file" ] || broker creds add "$@" --data "$data" --out "$file"
}
credentials brokers operator health
credentials tools operator operator
credentials tools agent demo
credentials workers worker worker-default --pool default
credentials workers worker worker-heavy --pool heavy
