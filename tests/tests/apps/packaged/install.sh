#!/bin/bash
# Steps of an administrator after `apt-get install`, and questions of packages when they are configured: databases, an
# account in each application, their configuration for Apache switched on. Runs where `scripts/with-packaged.sh` has put
# the applications: `install.sh DATABASE-PORT HTTP-PORT`; the database has a user `app` with the password `secret`.
set -euo pipefail
database=$1
http=$2

sql() { mariadb --no-defaults --protocol=tcp --host=127.0.0.1 --port="$database" --user=app --password=secret "$@"; }
# Servers and PHP run as several users here; permissions are not compared.
writable() { mkdir -p "$@" && chmod -R a+rwX "$@"; }

# MediaWiki: its own installer, with SQLite.
writable /var/lib/mediawiki/data /var/lib/mediawiki/cache /var/lib/mediawiki/images /var/cache/mediawiki
php /usr/share/mediawiki/maintenance/install.php --dbtype sqlite --dbpath /var/lib/mediawiki/data --dbname wiki \
    --server http://localhost --scriptpath /mediawiki --confpath /etc/mediawiki --pass "a long secret" Wiki Ada >/dev/null
cat >>/etc/mediawiki/LocalSettings.php <<'END'
$wgServer = 'http://localhost';
$wgEnableUploads = true;
$wgCacheDirectory = '/var/cache/mediawiki';
$wgSessionCacheType = CACHE_DB;
$wgJobRunRate = 0;
# Its default depends on PHP's SAPI name: for CGI, links have no PATH_INFO.
$wgArticlePath = '/mediawiki/index.php?title=$1';
END
writable /var/lib/mediawiki/data /var/cache/mediawiki

# phpMyAdmin: the files that dbconfig-common writes.
sql -e "CREATE DATABASE phpmyadmin; CREATE DATABASE shop; CREATE TABLE shop.goods (id INT PRIMARY KEY, name TEXT);
    INSERT INTO shop.goods VALUES (1, 'saddle'), (2, 'bridle & bit')"
sql phpmyadmin </usr/share/dbconfig-common/data/phpmyadmin/install/mysql
cat >/etc/phpmyadmin/config-db.php <<END
<?php
\$dbuser='app'; \$dbpass='secret'; \$dbname='phpmyadmin'; \$dbserver='127.0.0.1'; \$dbport='$database'; \$dbtype='mysql';
END
echo "<?php \$cfg['blowfish_secret'] = '0123456789abcdef0123456789abcdef';" >/var/lib/phpmyadmin/blowfish_secret.inc.php
# It creates this only for its own user, so the other server would compile each page's templates anew.
writable /var/lib/phpmyadmin/tmp/twig
writable /var/lib/phpmyadmin/tmp

# Roundcube: its sample configuration, SQLite.
sed -e "s/rcmail-!24ByteDESkey\*Str/012345678901234567890123/" /usr/share/roundcube/config.inc.php.sample >/etc/roundcube/config.inc.php
writable /var/lib/roundcube/data /var/lib/roundcube/temp /var/log/roundcube
sqlite3 /var/lib/roundcube/data/roundcube.db </usr/share/dbconfig-common/data/roundcube/install/sqlite3
cat >/etc/roundcube/debian-db.php <<'END'
<?php
$dbuser=''; $dbpass=''; $basepath='/var/lib/roundcube/data'; $dbname='roundcube.db'; $dbserver=''; $dbport=''; $dbtype='sqlite3';
END
writable /var/lib/roundcube/data
echo 'Alias /roundcube /var/lib/roundcube/public_html' >/etc/apache2/conf-available/roundcube-alias.conf

# Cacti: its tables, an administrator, no questions at the first visit.
sql -e "CREATE DATABASE cacti CHARACTER SET latin1"
sql cacti </usr/share/dbconfig-common/data/cacti/install/mysql
sql cacti -e "UPDATE user_auth SET password=md5('secret'), must_change_password='' WHERE id=1;
    UPDATE version SET cacti='$(cat /usr/share/cacti/site/include/cacti_version)';
    REPLACE INTO settings SET name='rrdtool_version', value='rrd-1.7.x'"
sed -e "s/_DBC_DBUSER_/app/; s/_DBC_DBPASS_/secret/; s/_DBC_DBNAME_/cacti/; s/_DBC_DBSERVER_/127.0.0.1/; s/_DBC_DBPORT_/$database/" \
    /usr/share/cacti/conf_templates/debian.php.dist >/etc/cacti/debian.php
touch /var/log/cacti/cacti.log
writable /var/log/cacti /var/lib/cacti
cp /usr/share/cacti/conf_templates/cacti.apache.conf /etc/apache2/conf-available/cacti.conf

# PostfixAdmin: its database, not set up yet.
sql -e "CREATE DATABASE postfixadmin"
cat >/etc/postfixadmin/config.local.php <<END
<?php
\$CONF['configured'] = true;
\$CONF['database_type'] = 'mysqli';
\$CONF['database_host'] = '127.0.0.1';
\$CONF['database_port'] = '$database';
\$CONF['database_user'] = 'app';
\$CONF['database_password'] = 'secret';
\$CONF['database_name'] = 'postfixadmin';
\$CONF['setup_password'] = '$(php -r 'echo password_hash("secret", PASSWORD_DEFAULT);')';
END
writable /var/cache/postfixadmin

# Icinga Web 2: the token that its wizard asks for.
mkdir -p /etc/icingaweb2
echo 0123456789abcdef >/etc/icingaweb2/setup.token
writable /etc/icingaweb2 /var/lib/icingaweb2

# phpLDAPadmin, without a server to log in to.
cp /usr/share/phpldapadmin/config/config.php.example /etc/phpldapadmin/config.php 2>/dev/null ||
    echo '<?php $servers = new Datastore(); $servers->newServer("ldap_pla"); $servers->setValue("server","name","none");' >/etc/phpldapadmin/config.php

# SimpleSAMLphp, which Debian 13 does not have: the secrets that its package asks for.
mkdir -p /var/lib/simplesamlphp
cat >/var/lib/simplesamlphp/secrets.inc.php <<'END'
<?php
$config['secretsalt'] = '0123456789abcdef0123456789abcdef';
$config['auth.adminpassword'] = 'secret';
END
writable /var/lib/simplesamlphp /var/log/simplesamlphp

writable /var/lib/shaarli /var/cache/shaarli

# DokuWiki: the answers to its package's questions.
writable /var/lib/dokuwiki /etc/dokuwiki
cp /usr/share/dokuwiki/.htaccess.dist /etc/dokuwiki/htaccess
mkdir -p /var/lib/dokuwiki/acl
printf "# <?php exit()?>\n* @ALL 1\n* @user 16\n" >/var/lib/dokuwiki/acl/acl.auth.php
printf '# <?php exit()?>\nada:5ebe2294ecd0e0f08eab7690d2a6ee69:Ada:ada@example.org:admin,user\n' >/var/lib/dokuwiki/acl/users.auth.php
printf "<?php\n\$conf['title'] = 'Wiki';\n\$conf['useacl'] = 1;\n\$conf['superuser'] = '@admin';\$conf['dmode'] = 0777;\$conf['fmode'] = 0666;\n" >/etc/dokuwiki/local.php
cat >/etc/apache2/conf-available/dokuwiki.conf <<'END'
AliasMatch ^/dokuwiki/sites/[^/]+$      /usr/share/dokuwiki/
AliasMatch ^/dokuwiki/sites/[^/]+/(.*)$ /usr/share/dokuwiki/$1
Alias      /dokuwiki                    /usr/share/dokuwiki/
<Directory /usr/share/dokuwiki/>
    Options +FollowSymLinks
    AllowOverride All
    order allow,deny
    Allow from all
</Directory>
END
writable /var/lib/dokuwiki /etc/dokuwiki

# Apache as Debian configures it, on the test's port.
ln -sf /etc/phpmyadmin/apache.conf /etc/apache2/conf-available/phpmyadmin.conf
ln -sf /etc/roundcube/apache.conf /etc/apache2/conf-available/roundcube.conf
for name in phpldapadmin simplesamlphp phpsysinfo; do
    ln -sf "/etc/$name/apache.conf" "/etc/apache2/conf-available/$name.conf"
done
for name in mediawiki phpmyadmin roundcube roundcube-alias cacti icingaweb2 adminer phpldapadmin postfixadmin simplesamlphp \
    phpsysinfo shaarli dokuwiki; do
    [ -e "/etc/apache2/conf-available/$name.conf" ] || continue
    ln -sf "../conf-available/$name.conf" "/etc/apache2/conf-enabled/$name.conf"
done
php=$("$(dirname "$0")/../../../../scripts/php-version.sh")
for name in rewrite headers expires "php$php"; do
    for file in /etc/apache2/mods-available/$name.load /etc/apache2/mods-available/$name.conf; do
        [ ! -e "$file" ] || ln -sf "../mods-available/$(basename "$file")" /etc/apache2/mods-enabled/
    done
done
rm -f /etc/apache2/mods-enabled/mpm_event.* /etc/apache2/mods-enabled/mpm_worker.*
for file in load conf; do ln -sf ../mods-available/mpm_prefork.$file /etc/apache2/mods-enabled/; done
echo "Listen 127.0.0.1:$http" >/etc/apache2/ports.conf
rm -f /etc/apache2/sites-enabled/*
mkdir -p /var/www/html
cat >/etc/apache2/sites-enabled/test.conf <<END
<VirtualHost 127.0.0.1:$http>
    DocumentRoot /var/www/html
</VirtualHost>
END
