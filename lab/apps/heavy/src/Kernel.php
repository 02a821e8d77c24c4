<?php

namespace Heavy;

use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\Configuration;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\EntityManagerInterface;
use Doctrine\ORM\Mapping\Driver\AttributeDriver;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\Cache\Adapter\PhpFilesAdapter;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;
use Symfony\Component\Serializer\Encoder\JsonEncoder;
use Symfony\Component\Serializer\Mapping\Factory\CacheClassMetadataFactory;
use Symfony\Component\Serializer\Mapping\Factory\ClassMetadataFactory;
use Symfony\Component\Serializer\Mapping\Loader\AnnotationLoader;
use Symfony\Component\Serializer\Normalizer\ObjectNormalizer;
use Symfony\Component\Serializer\Serializer;
use Symfony\Component\Serializer\SerializerInterface;

use function Symfony\Component\DependencyInjection\Loader\Configurator\service;
use function Symfony\Component\DependencyInjection\Loader\Configurator\tagged_iterator;

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
            'property_access' => true,
            'php_errors' => ['log' => true],
        ]);
        $services = $container->services();
        $services->set(EntityManagerInterface::class, EntityManager::class)
            ->factory([self::class, 'entities'])
            ->args(['%kernel.project_dir%', '%kernel.cache_dir%'])
            ->public();
        $services->set(SerializerInterface::class, Serializer::class)
            ->factory([self::class, 'serializer'])
            ->args(['%kernel.cache_dir%']);
        $services->set(Pricing::class);
        foreach (glob($this->getProjectDir() . '/src/Part/*.php') as $file) {
            $services->set('Heavy\\Part\\' . basename($file, '.php'))->args(['%kernel.environment%'])->tag('heavy.part');
        }
        $services->set(Parts::class)->args([tagged_iterator('heavy.part')]);
        $services->set(ProductController::class)
            ->args([service(EntityManagerInterface::class), service(SerializerInterface::class), service(Pricing::class), service(Parts::class), '%kernel.project_dir%'])
            ->public()
            ->tag('controller.service_arguments');
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        // Some hundred routes, as a shop has; the one in use comes last.
        for ($i = 1; $i <= 400; $i++) {
            $routes->add("section_$i", "/api/v2/admin/section$i/{code}")->controller([ProductController::class, 'show']);
        }
        $routes->add('product', '/api/v2/shop/products/{code}')->controller([ProductController::class, 'show']);
    }

    public static function entities(string $projectDir, string $cacheDir): EntityManager
    {
        $environment = require $projectDir . '/environment.php';
        $configuration = new Configuration();
        $configuration->setMetadataDriverImpl(new AttributeDriver([$projectDir . '/src/Entity']));
        $configuration->setMetadataCache(new PhpFilesAdapter('metadata', 0, $cacheDir . '/orm'));
        $configuration->setQueryCache(new PhpFilesAdapter('query', 0, $cacheDir . '/orm'));
        $configuration->setProxyDir($cacheDir . '/proxies');
        $configuration->setProxyNamespace('Heavy\\Proxies');
        $configuration->setAutoGenerateProxyClasses(false);
        $connection = DriverManager::getConnection([
            'driver' => 'pdo_mysql',
            'unix_socket' => $environment['mysql'],
            'dbname' => 'lab',
            'user' => 'lab',
            'password' => 'lab',
            'charset' => 'utf8mb4',
            'serverVersion' => 'mariadb-10.11.0',
        ], $configuration);
        return new EntityManager($connection, $configuration);
    }

    public static function serializer(string $cacheDir): Serializer
    {
        $metadata = new CacheClassMetadataFactory(
            new ClassMetadataFactory(new AnnotationLoader()),
            new PhpFilesAdapter('serializer', 0, $cacheDir . '/serializer'),
        );
        return new Serializer([new ObjectNormalizer($metadata)], [new JsonEncoder()]);
    }
}
