<?php
ldap_set_option(null, LDAP_OPT_X_TLS_REQUIRE_CERT, LDAP_OPT_X_TLS_NEVER);
$directory = ldap_connect('ldaps://127.0.0.1:__PORT__');
ldap_set_option($directory, LDAP_OPT_PROTOCOL_VERSION, 3);
$bound = ldap_bind($directory);
