<?php
$handle = function () {
    header('X-Set: v');
    frankenphp_log('logged as error', FRANKENPHP_LOG_LEVEL_ERROR, ['k' => 'v']);
    frankenphp_log('logged as info');
    echo json_encode([frankenphp_request_headers()['X-Mark'] ?? '', frankenphp_response_headers()['X-Set'], getallheaders()['X-Mark'] ?? '', FRANKENPHP_LOG_LEVEL_DEBUG, FRANKENPHP_LOG_LEVEL_INFO, FRANKENPHP_LOG_LEVEL_WARN, FRANKENPHP_LOG_LEVEL_ERROR, Howdah\mode()]);
};
