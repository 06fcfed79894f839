// Package mysqltest runs real servers for tests, on 127.0.0.1, from a root
// filesystem that holds mysqld.
//
// CNMSQL_MYSQL_ROOT names that folder; tests that need it are skipped without.
// Every server ends with its test, and with the test process however that ends.
// Data directories are copies of one template, which is made once and kept in the
// user's cache folder.
//
// It is for tests only. A process that uses it must not use os/exec: see
// mysqld.Reaper.
package mysqltest
