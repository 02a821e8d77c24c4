<?php
header_remove('X-Powered-By');
if (isset($_GET['status'])) http_response_code((int) $_GET['status']);
if (isset($_GET['cache'])) header('Cache-Control: private');
echo "script=", $_SERVER['SCRIPT_NAME'], "\n";
echo "file=", substr($_SERVER['SCRIPT_FILENAME'], strlen($_SERVER['DOCUMENT_ROOT'])), "\n";
echo "self=", $_SERVER['PHP_SELF'], "\n";
echo "method=", $_SERVER['REQUEST_METHOD'], "\n";
echo "info=", $_SERVER['PATH_INFO'] ?? '', "\n";
echo "query=", $_SERVER['QUERY_STRING'] ?? '', "\n";
echo "uri=", $_SERVER['REQUEST_URI'], "\n";
echo "body=", strlen(file_get_contents('php://input')), "\n";
ksort($_SERVER);
foreach ($_SERVER as $name => $value) {
    // PHP has a REDIRECT_STATUS of 200 from FastCGI servers, and none from Apache.
    if ($name === 'REDIRECT_STATUS' && $value === '200') continue;
    if (preg_match('/^((REDIRECT_)+|E_|no-|HTTP_AUTH|HTTP_X_|HTTP_PROXY|REMOTE_USER|HTTPS$|AUTH_TYPE|bad_|is_|force-)/', $name)) {
        echo "$name=$value\n";
    }
}
foreach (['memory_limit', 'arg_separator.output', 'display_errors', 'auto_prepend_file', 'max_input_vars', 'upload_max_filesize'] as $name) {
    echo "ini-$name=", ini_get($name), "\n";
}
