<?php
require_once __DIR__ . '/../bootstrap.php';

use Symfony\Component\HttpFoundation\Request;

$kernel = new Heavy\Kernel('prod', false);
$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
