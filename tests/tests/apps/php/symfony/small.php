<?php
namespace App;
set_include_path('/usr/share/php');
foreach (['HttpKernel', 'DependencyInjection', 'Config', 'Dotenv', 'Runtime'] as $part) {
    require_once "Symfony/Component/$part/autoload.php";
}
require_once dirname(__DIR__) . '/root/gate.php';
spl_autoload_register(function ($class) {
    if (str_starts_with($class, 'Howdah\\Runtime\\')) {
        require '@PACKAGE@' . substr($class, 15) . '.php';
    }
});
use Symfony\Component\DependencyInjection\{
    ContainerBuilder, Reference
};
use Symfony\Component\HttpFoundation\{
    Request, Response
};
final class Counter {
    public int $n = 0;
    public function reset(): void {
        $this->n = 0;
        \mark('reset');
    }
}
final class Http implements \Symfony\Component\HttpKernel\HttpKernelInterface, \Symfony\Component\HttpKernel\TerminableInterface {
    public function __construct(private Counter $counter) {}
    public function handle(Request $request, int $type = 1, bool $catch = true): Response {
        return new Response(++$this->counter->n . ' ' . ($_ENV['OF_ENV'] ?? 'no .env') . ' ' . $request->getPathInfo());
    }
    public function terminate(Request $request, Response $response): void {
        \mark('terminate' . strtr($request->getPathInfo(), '/', '-'));
    }
}
final class Kernel extends \Symfony\Component\HttpKernel\Kernel {
    public function registerBundles(): iterable {
        return [];
    }
    public function getProjectDir(): string {
        return dirname(__DIR__);
    }
    public function registerContainerConfiguration(\Symfony\Component\Config\Loader\LoaderInterface $loader) {}
    protected function build(ContainerBuilder $container) {
        $container->register('counter', Counter::class)->setPublic(true)->addTag('kernel.reset', ['method' => 'reset']);
        $container->register('http_kernel', Http::class)->setPublic(true)->setArguments([new Reference('counter')]);
        $container->register('services_resetter', \Symfony\Component\HttpKernel\DependencyInjection\ServicesResetter::class)->setPublic(true);
        $container->addCompilerPass(new \Symfony\Component\HttpKernel\DependencyInjection\ResettableServicePass());
    }
}
