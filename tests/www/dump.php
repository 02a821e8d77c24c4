<?php
// Responds with everything that a script can know about its request, as one flat JSON object.
$all = $_SERVER;
foreach (['_GET' => $_GET, '_POST' => $_POST, '_COOKIE' => $_COOKIE, '_REQUEST' => $_REQUEST] as $name => $values) {
    $all[$name] = json_encode($values, JSON_INVALID_UTF8_SUBSTITUTE);
}
foreach ($_FILES as $name => $file) {
    unset($file['tmp_name']);
    $all["_FILES $name"] = json_encode($file);
}
$all['php://input'] = file_get_contents('php://input');
$all['getallheaders()'] = (function () {
    $headers = array_change_key_case(getallheaders());
    ksort($headers);
    return json_encode($headers, JSON_INVALID_UTF8_SUBSTITUTE);
})();
$all['getcwd()'] = getcwd();
$all['__FILE__'] = __FILE__;
$all['included'] = count(get_included_files());
$all['argv'] = json_encode($_SERVER['argv'] ?? null);
header('Content-Type: application/json');
echo json_encode($all, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES);
