// Package realm stores who may use a fabric: the operator whose key signs everything, the
// tenants, which are NATS accounts, and the issued credentials. It is a folder, DIR/auth
// beside a broker's data:
//
//	realm.json        the public part: keys, claims, names
//	seeds/KEY.seed    the private keys of the operator and the accounts
//	lock              locked by the process that changes the realm
//
// A change of realm.json is atomic, and one process at a time makes it. A server that
// follows the folder reads only this file. The private keys of users are written to their
// credentials files and stored nowhere else.
//
// Only this module imports it.
package realm
