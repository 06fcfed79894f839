package mysqld

// Managed is what a Supervisor makes of a command.
var Managed = managed
