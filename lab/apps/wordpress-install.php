<?php
// Installs WordPress into its database, as the installation page would; runs once on the command line.
$_SERVER['HTTP_HOST'] = 'localhost';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
$_SERVER['REQUEST_METHOD'] = 'GET';
define('WP_INSTALLING', true);
// The original would send mail.
function wp_new_blog_notification($title, $url, $user, $password)
{
}
require $argv[1] . '/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install('Howdah Lab', 'admin', 'admin@example.org', true, '', 'only-for-measuring');
echo 'installed';
