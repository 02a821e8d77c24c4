<?php
$handle = function () { echo extension_loaded('xdebug') ? 'with' : 'without'; };
while (frankenphp_handle_request($handle)) {
}
