<?php

namespace Shop;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public function registerBundles(): iterable
    {
        yield new FrameworkBundle();
    }

    public function getProjectDir(): string
    {
        return \dirname(__DIR__);
    }

    public function getCacheDir(): string
    {
        return $this->getProjectDir() . '/var/cache/' . $this->environment;
    }

    public function getLogDir(): string
    {
        return $this->getProjectDir() . '/var/log';
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', [
            'secret' => 'only-for-measuring',
            'http_method_override' => false,
            'router' => ['utf8' => true, 'strict_requirements' => null],
            'php_errors' => ['log' => true],
        ]);
        $services = $container->services();
        $services->set(Connection::class)
            ->factory([self::class, 'connect'])
            ->args(['%kernel.project_dir%']);
        $services->set(ProductController::class)
            ->autowire()
            ->public()
            ->tag('controller.service_arguments');
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        // A hundred routes, as an application of some size has; the ones in use come last.
        for ($i = 1; $i <= 98; $i++) {
            $routes->add("section_$i", "/api/section$i/{id}/{what}")
                ->controller([ProductController::class, 'show'])
                ->requirements(['id' => '\d+', 'what' => '[a-z]+']);
        }
        $routes->add('products', '/api/products')->controller([ProductController::class, 'list']);
        $routes->add('product', '/api/products/{id}')
            ->controller([ProductController::class, 'show'])
            ->requirements(['id' => '\d+']);
    }

    public static function connect(string $projectDir): Connection
    {
        $environment = require $projectDir . '/environment.php';
        return DriverManager::getConnection([
            'driver' => 'pdo_mysql',
            'unix_socket' => $environment['mysql'],
            'dbname' => 'lab',
            'user' => 'lab',
            'password' => 'lab',
            'charset' => 'utf8mb4',
            'serverVersion' => 'mariadb-10.11.0',
        ]);
    }
}
